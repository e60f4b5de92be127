"""What an experiment leaves behind: JSON lines, a header first, then one line per episode.

Every number that is shown is computed from these lines. A line names its world, arm and seed, so
that files can be put together and read by any tool.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from langchain_memrl.errors import InputError

SPLITS = ("train", "held_out")


@dataclass(frozen=True, slots=True)
class Header:
    """What was run.

    Attributes:
        suite: The suite's name.
        model: The model's name; empty where none is asked.
        settings: Everything that was chosen, as plain values: protocol, epochs, batch, seeds ...
        versions: Versions of this package, of what it stands on and of the environment.
    """

    suite: str
    model: str
    settings: dict[str, Any]
    versions: dict[str, str]


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """One task answered by one arm.

    Attributes:
        world: Which variant of the suite; empty where it has one.
        arm: Which configuration answered.
        seed: Which draw of tasks and order.
        epoch: Which pass over the tasks, from 0.
        step: Which task of the arm, counted over all epochs, from 0.
        task: The task's id.
        success: Whether it was solved; None where the environment failed, which is no failure.
        shown: Ids of the memories in the prompt, best first.
        q_values: Their Q at that moment, in the same order.
        seconds: How long it took.
        split: `"train"`, or `"held_out"` where the bank was frozen and the task is a new one.
        reward: What the bank was told; None: nothing.
        written: Id of the memory that the episode wrote; empty: none.
        answer: What was answered.
        error: Why the environment failed; empty: it did not.
        prompt_tokens: Tokens sent, over all calls.
        completion_tokens: Tokens received.
        calls: Calls of the model, summaries included.
    """

    world: str
    arm: str
    seed: int
    epoch: int
    step: int
    task: str
    success: bool | None
    shown: tuple[str, ...]
    q_values: tuple[float, ...]
    seconds: float
    split: str = "train"
    reward: float | None = None
    written: str = ""
    answer: str = ""
    error: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0

    def __post_init__(self) -> None:
        if self.success is not None and not isinstance(self.success, bool):
            raise InputError(f"success is {self.success!r}; expected true, false or null")
        if self.split not in SPLITS:
            raise InputError(f"split is {self.split!r}; expected one of {SPLITS}")
        counts = (self.epoch, self.step, self.prompt_tokens, self.completion_tokens, self.calls)
        _check(self, counts, (self.seconds, *self.q_values, self.reward or 0.0))


@dataclass(frozen=True, slots=True)
class BankRecord:
    """An arm's bank after an epoch, one entry per memory, oldest first.

    Attributes:
        world: See `EpisodeRecord`, like `arm`, `seed` and `epoch`.
        arm: Which configuration.
        seed: Which draw.
        epoch: After which pass.
        ids: The memories.
        q_values: Their Q.
        updates: How often Q moved.
        failures: Whether the episode that wrote it failed.
    """

    world: str
    arm: str
    seed: int
    epoch: int
    ids: tuple[str, ...]
    q_values: tuple[float, ...]
    updates: tuple[int, ...]
    failures: tuple[bool, ...]

    def __post_init__(self) -> None:
        _check(self, (self.epoch, *self.updates), self.q_values)
        sizes = {len(part) for part in (self.ids, self.q_values, self.updates, self.failures)}
        if len(sizes) > 1:
            raise InputError(f"the columns of a bank have lengths {sorted(sizes)}")


def _check(
    record: EpisodeRecord | BankRecord, counts: Iterable[object], numbers: Iterable[object]
) -> None:
    """Refuse what no run writes: a damaged line is found when it is read, not in a figure."""
    texts = (record.world, record.arm, *record.shown) if isinstance(record, EpisodeRecord) else ()
    if not all(type(text) is str for text in texts):
        raise InputError(f"a name is no text in {texts}")
    for count in counts:
        if type(count) is not int or count < 0:
            raise InputError(f"{count!r} is no count; expected a whole number from 0 on")
    for number in numbers:
        if type(number) not in (int, float) or not math.isfinite(number):  # type: ignore[arg-type]
            raise InputError(f"{number!r} is no finite number")


KINDS: dict[str, type[Any]] = {"header": Header, "episode": EpisodeRecord, "bank": BankRecord}
NAMES = {kind: name for name, kind in KINDS.items()}


class Records(NamedTuple):
    """The content of one file."""

    header: Header
    episodes: list[EpisodeRecord]
    banks: list[BankRecord]


def line(value: Header | EpisodeRecord | BankRecord) -> str:
    """One record as a line of JSON, its end included."""
    return json.dumps({"kind": NAMES[type(value)], **asdict(value)}, ensure_ascii=False) + "\n"


def write_records(
    path: Path, header: Header, records: Iterable[EpisodeRecord | BankRecord]
) -> None:
    """Write a whole file."""
    with path.open("w", encoding="utf-8") as file:
        file.write(line(header))
        file.writelines(map(line, records))


def read_records(path: Path) -> Records:
    """Read a file.

    Raises:
        InputError: It is no such file.
    """
    try:
        with path.open("rb") as file:
            values = list(map(_value, file))
        header = values[0]
        if not isinstance(header, Header):
            raise ValueError(f"expected a header first, got {NAMES[type(header)]}")
    except (OSError, ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
        raise InputError(f"{path} holds no records ({error})") from error
    return Records(
        header,
        [value for value in values if isinstance(value, EpisodeRecord)],
        [value for value in values if isinstance(value, BankRecord)],
    )


def _value(text: bytes) -> Any:
    fields = json.loads(text)
    kind = KINDS[fields.pop("kind")]
    return kind(
        **{
            name: tuple(value) if isinstance(value, list) else value
            for name, value in fields.items()
        }
    )
