"""The games of ALFWorld in a user's download, read and checked. Nothing of them comes along."""

import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from langchain_memrl.errors import InputError
from langchain_memrl.evals.benchmarks.downloads import digest, read_download
from langchain_memrl.evals.benchmarks.households.grammar import check_grammar, goal_of
from langchain_memrl.evals.benchmarks.households.names import kind_of

WHERE = (
    "alfworld needs its games: pip install alfworld && alfworld-download fetches json_2.1.1 (or "
    "take it from https://github.com/alfworld/alfworld/releases); give that folder, or one of "
    "train, valid_seen and valid_unseen in it, as --data PATH"
)
FILE = "game.tw-pddl"
TRAIN, SEEN, UNSEEN = "train", "valid_seen", "valid_unseen"
SPLITS = (TRAIN, SEEN, UNSEEN)
KINDS = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
"""The six kinds of tasks: a task's folder begins with one of them."""
LEFT_OUT = ("movable", "Sliced")
"""In the name of a folder: tasks that ALFWorld leaves out."""
RECEPTACLE = re.compile(r"^\s*(\S+) - receptacle\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Game:
    """One game.

    Attributes:
        id: The folders of its task and of its trial.
        split: Which part of the data it is in.
        goal: What it asks for.
        room: What furniture there is, in one line.
        walkthrough: Commands that win it; empty where the file has none.
    """

    id: str
    split: str
    goal: str
    room: str
    walkthrough: tuple[str, ...]
    _packed: bytes

    @property
    def kind(self) -> str:
        """Which of `KINDS` it is."""
        return self.id.split("-")[0]

    @property
    def parts(self) -> list[str]:
        """What the engine plays: the domain, the problem and the grammar."""
        parts: list[str] = json.loads(zlib.decompress(self._packed))
        return parts


@dataclass(frozen=True)
class Games:
    """What a download holds.

    Attributes:
        games: The games. Their order mixes the kinds, and is the same for the same games.
        hashes: SHA-256 of the file that was read, or of all files of each part of the data.
    """

    games: tuple[Game, ...]
    hashes: Mapping[str, str]

    @cached_property
    def texts(self) -> dict[str, str]:
        """What is asked in each game, by its id: the goal and the furniture, each text once.

        That is what MemRL's authors embed, shorter. Games that differ only in where things are
        get a number, against the order of their ids.
        """
        alike = Counter(text_of(game) for game in self.games)
        seen: Counter[str] = Counter()
        texts = {}
        for game in sorted(self.games, key=lambda game: game.id):
            text = text_of(game)
            seen[text] += 1
            number = f"\nArrangement {seen[text]} of {alike[text]}" if alike[text] > 1 else ""
            texts[game.id] = text + number
        return texts

    def held_out(self, game: Game) -> bool:
        """Whether a transfer keeps a game for the end.

        With games to train on, both validation parts; else the one with unseen rooms.
        """
        if any(other.split == TRAIN for other in self.games):
            return game.split != TRAIN
        return game.split == UNSEEN


def load_games(path: Path | None) -> Games:
    """Read ALFWorld's folder, or one file with many games.

    Args:
        path: A folder that holds `train`, `valid_seen` or `valid_unseen`, or one of these; or a
            `.json` file, also `.json.xz` or `.json.gz`, with `domain` and `games`, each game with
            `path`, `pddl_problem`, `grammar` and `walkthrough`.

    Raises:
        InputError: There is no path, nothing there, or something else than games.
    """
    if path is None:
        raise InputError(WHERE)
    found, hashes = _read_folder(path) if path.is_dir() else _read_file(path)
    if not found:
        raise InputError(f"{path} holds no games; {WHERE}")
    twice = [id for id, count in Counter(game.id for game in found).items() if count > 1]
    if twice:
        raise InputError(f"{path}: two games are called {twice[0]}")
    return Games(tuple(sorted(found, key=lambda game: digest(game.id))), hashes)


def text_of(game: Game) -> str:
    """The goal and the furniture."""
    return f"{game.goal}\nRoom: {game.room}"


def _read_file(path: Path) -> tuple[list[Game], dict[str, str]]:
    content, sha256 = read_download(path, WHERE)
    if not isinstance(content, dict) or not isinstance(content.get("games"), list):
        raise InputError(f"{path} holds no games: expected an object with domain and games")
    domain = content.get("domain")
    games = [
        game
        for number, entry in enumerate(content["games"])
        for game in _game(f"{path}, game {number}", entry, domain, _folders(entry))
    ]
    return games, {path.name: sha256}


def _read_folder(path: Path) -> tuple[list[Game], dict[str, str]]:
    games: list[Game] = []
    read: dict[str, list[str]] = {}
    for file in sorted(path.rglob(FILE)):
        folders = file.resolve().parts[-4:-1]
        entry, sha256 = read_download(file, WHERE)
        read.setdefault(folders[0], []).append(f"{'/'.join(folders)} {sha256}")
        domain = entry.get("pddl_domain") if isinstance(entry, dict) else None
        games += _game(str(file), entry, domain, folders)
    return games, {split: digest("\n".join(lines)) for split, lines in read.items()}


def _folders(entry: Any) -> Sequence[str]:
    path = entry.get("path", "") if isinstance(entry, dict) else ""
    return PurePosixPath(str(path)).parts[-4:-1]


def _game(where: str, entry: Any, domain: Any, folders: Sequence[str]) -> Iterator[Game]:
    """The game of an entry, unless it is one that ALFWorld leaves out."""
    try:
        split, task, trial = folders
        if split not in SPLITS or task.split("-")[0] not in KINDS:
            raise ValueError(
                f"it is in {'/'.join(folders)}; expected {'|'.join(SPLITS)}/KIND-.../TRIAL"
            )
        if any(word in task for word in LEFT_OUT) or not entry.get("solvable", True):
            return
        problem, grammar = entry["pddl_problem"], entry["grammar"]
        if not all(isinstance(text, str) for text in (domain, problem, grammar)):
            raise TypeError("domain, problem and grammar have to be texts")
        check_grammar(grammar)
        yield Game(
            f"{task}/{trial}",
            split,
            goal_of(grammar),
            room_of(problem),
            tuple(map(str, entry.get("walkthrough") or ())),
            zlib.compress(json.dumps([domain, problem, grammar]).encode(), level=1),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{where} is no game of ALFWorld ({error}); {WHERE}") from error


def room_of(problem: str) -> str:
    """The furniture of a planning problem: `bed, desk (2), drawer (6)`."""
    kinds = Counter(map(kind_of, RECEPTACLE.findall(problem)))
    return ", ".join(
        f"{kind} ({count})" if count > 1 else kind for kind, count in sorted(kinds.items())
    )
