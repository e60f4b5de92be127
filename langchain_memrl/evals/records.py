"""What an experiment leaves behind: one JSON line per episode, after a header.

Every number that is shown is computed from these lines.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from langchain_memrl.errors import InputError


@dataclass(frozen=True, slots=True)
class Header:
    """What was run.

    Attributes:
        suite: The suite's name.
        seed: Seed of world and order.
        model: The model's name.
        settings: Everything else that was chosen, as plain values.
        versions: Versions of this package and what it stands on.
    """

    suite: str
    seed: int
    model: str
    settings: dict[str, Any]
    versions: dict[str, str]


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """One task answered by one arm.

    Attributes:
        arm: Which configuration answered.
        epoch: Which pass over the tasks, from 0.
        step: Which task of the arm, counted over all epochs, from 0.
        task: The task's id.
        answer: What the model said.
        success: Whether it was right.
        shown: Ids of the memories in the prompt, best first.
        q_values: Their Q at that moment, in the same order.
        seconds: How long it took.
    """

    arm: str
    epoch: int
    step: int
    task: str
    answer: str
    success: bool
    shown: tuple[str, ...]
    q_values: tuple[float, ...]
    seconds: float


def write_records(path: Path, header: Header, records: Iterable[EpisodeRecord]) -> None:
    """Write header and episodes as JSON lines."""
    with path.open("w", encoding="utf-8") as file:
        file.write(_line("header", header))
        file.writelines(_line("episode", record) for record in records)


def read_records(path: Path) -> tuple[Header, list[EpisodeRecord]]:
    """Read a file of `write_records`.

    Raises:
        InputError: It is no such file.
    """
    try:
        first, *rest = (json.loads(line) for line in path.read_text("utf-8").splitlines())
        header = Header(**_fields(first, "header"))
        records = [EpisodeRecord(**_fields(line, "episode")) for line in rest]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(f"{path} holds no records ({error})") from error
    return header, records


def _line(kind: str, value: Header | EpisodeRecord) -> str:
    return json.dumps({"kind": kind, **asdict(value)}, ensure_ascii=False) + "\n"


def _fields(line: dict[str, Any], kind: str) -> dict[str, Any]:
    if line.pop("kind") != kind:
        raise ValueError(f"expected a line of kind {kind}")
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in line.items()
    }
