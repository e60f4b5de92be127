"""Read the folder of an experiment, file by file, so that millions of episodes fit into memory."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from sys import intern
from typing import Any

from langchain_memrl.errors import InputError
from langchain_memrl.evals.analysis.metrics import RunKey, by_run
from langchain_memrl.evals.analysis.runs import Run, reduce_run, with_regret
from langchain_memrl.evals.records import KINDS, BankRecord, EpisodeRecord, Header

UNUSED = {"answer": "", "written": "", "shown": ()}  # texts that no number is made of


@dataclass(frozen=True, slots=True)
class Experiment:
    """A folder of records, reduced.

    Attributes:
        headers: The different headers found.
        runs: Every run: one arm in one world with one seed.
        cut: Files whose last line is incomplete, because the run was killed or is still going on.
    """

    headers: tuple[Header, ...]
    runs: tuple[Run, ...]
    cut: tuple[str, ...] = ()

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms: in the order of the header's settings, else as they first appear."""
        return self._ordered("arms", [run.key.arm for run in self.runs])

    @property
    def worlds(self) -> tuple[str, ...]:
        """The worlds, in the same order."""
        return self._ordered("worlds", [run.key.world for run in self.runs])

    def _ordered(self, setting: str, names: Sequence[str]) -> tuple[str, ...]:
        chosen = [name for header in self.headers for name in header.settings.get(setting, ())]
        found = set(names)
        return tuple(name for name in dict.fromkeys([*chosen, *names]) if name in found)

    @property
    def abouts(self) -> dict[str, str]:
        """What each arm is, where the header's settings say so."""
        found: dict[str, str] = {}
        for header in self.headers:
            arms = header.settings.get("arms")
            if isinstance(arms, dict):
                found |= {name: str(arm["about"]) for name, arm in arms.items() if "about" in arm}
        return {arm: found[arm] for arm in self.arms if arm in found}

    @property
    def simulated(self) -> bool:
        """Whether any of it is simulation: no model was asked."""
        return any(is_simulated(header) for header in self.headers)

    @property
    def asked(self) -> bool:
        """Whether a model was asked: one is named, or the environment counted tokens itself."""
        named = any(header.model for header in self.headers)
        return named or (not self.simulated and any(run.tokens for run in self.runs))

    @property
    def said(self) -> tuple[str, ...]:
        """What the suite has to say wherever its numbers are shown."""
        told = (str(header.settings.get("note", "")) for header in self.headers)
        return tuple(filter(None, dict.fromkeys(told)))

    @property
    def exceptions(self) -> dict[str, str]:
        """Tasks that could not be solved where it was run, and why."""
        found: dict[str, str] = {}
        for header in self.headers:
            found |= header.settings.get("exceptions", {})
        return found


def is_simulated(header: Header) -> bool:
    """Whether the tasks and the agent were simulated."""
    return header.suite == "worlds" or bool(header.settings.get("simulated"))


def record_files(folder: Path) -> list[Path]:
    """All `*.jsonl` files below a folder, sorted.

    Raises:
        InputError: There is none.
    """
    found = sorted(path for path in folder.rglob("*.jsonl") if path.is_file())
    if not found:
        raise InputError(f"{folder} holds no records: there is no *.jsonl file below it")
    return found


def read_experiment(folder: Path, on_file: Callable[[Path], None] = lambda _: None) -> Experiment:
    """Read every file below a folder and keep what the metrics say of each run.

    Only one file is in memory at a time, without the texts of its episodes.

    Args:
        folder: Where the files are, at any depth.
        on_file: Told of each file after it was read.

    Raises:
        InputError: There is no file or no episode, a line is no record, a file has no header, the
            suites differ, or a run (world, arm and seed) stands in two files or an episode twice.
    """
    headers: list[Header] = []
    homes: dict[RunKey, Path] = {}
    runs: list[Run] = []
    cut: list[str] = []
    for path in record_files(folder):
        values = list(_values(path, cut))
        episodes = by_run(value for value in values if isinstance(value, EpisodeRecord))
        banks = by_run(value for value in values if isinstance(value, BankRecord))
        for header in (value for value in values if isinstance(value, Header)):
            if header not in headers:
                headers.append(header)
        for key, own in episodes.items():
            _check_once(key, own, homes.setdefault(key, path), path)
            runs.append(reduce_run(key, own, banks.get(key, [])))
        on_file(path)
    _check_one(folder, headers, runs)
    return Experiment(tuple(headers), tuple(with_regret(runs)), tuple(cut))


def _check_one(folder: Path, headers: list[Header], runs: list[Run]) -> None:
    suites = sorted({header.suite for header in headers})
    if len(suites) > 1:
        raise InputError(f"{folder} holds the suites {', '.join(suites)}; give the folder of one")
    if not runs:
        raise InputError(f"{folder} holds no episode yet")


def _check_once(key: RunKey, own: list[EpisodeRecord], home: Path, path: Path) -> None:
    """Counting something twice would make it look surer than it is."""
    name = f"world {key.world!r}, arm {key.arm!r}, seed {key.seed}"
    if home != path:
        raise InputError(
            f"{path} and {home} both hold {name}; report one experiment at a time: "
            "give the folder of one of them"
        )
    if len({(one.split, one.epoch, one.step, one.task) for one in own}) < len(own):
        raise InputError(f"{path} holds an episode of {name} twice; expected each step once")


def _values(path: Path, cut: list[str]) -> Iterator[Header | EpisodeRecord | BankRecord]:
    """The lines of a file as records; a last line that breaks off is left out and named."""
    with path.open("rb") as file:
        for number, text in enumerate(file, start=1):
            if not text.endswith(b"\n"):
                cut.append(str(path))
                return
            try:
                value = _value(json.loads(text))
                if number == 1 and not isinstance(value, Header):
                    raise ValueError("expected a header first")
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                raise InputError(f"{path}, line {number}, is no record ({error})") from error
            yield value


def _value(fields: dict[str, Any]) -> Any:
    kind = KINDS[fields.pop("kind")]
    if kind is Header:
        return kind(**fields)
    fields["world"], fields["arm"] = intern(fields["world"]), intern(fields["arm"])
    if kind is EpisodeRecord:
        fields |= UNUSED
        fields["task"], fields["q_values"] = intern(fields["task"]), tuple(fields["q_values"])
        return kind(**fields)
    lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
    return kind(**fields | lists)
