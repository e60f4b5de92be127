"""Takes a unit's bank back to the end of an earlier batch, so that what came later is run again."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from langchain_memrl.errors import InputError
from langchain_memrl.evals.environment import Trial
from langchain_memrl.evals.records import BankRecord, EpisodeRecord
from langchain_memrl.evals.running.acting import Answer
from langchain_memrl.evals.running.learning import learn
from langchain_memrl.evals.running.protocols import Batch
from langchain_memrl.evals.running.recalling import Shown
from langchain_memrl.memory import EpisodicMemory
from langchain_memrl.types import Memory

Record = EpisodeRecord | BankRecord
REWARDS = {"success": 1.0, "failure": -1.0, "unknown": 0.0}


def read_memories(bank: Path) -> dict[str, Memory]:
    """The memories of a bank by the episode that wrote them."""
    with EpisodicMemory.open(bank, create=False, read_only=True) as memory:
        return {found.episode_id: found for found in memory.list(limit=None)}


def learn_again(
    memory: EpisodicMemory,
    batch: Batch,
    shown: Sequence[Shown],
    records: Sequence[Record],
    written: Mapping[str, Memory],
    *,
    lessons: bool,
) -> None:
    """Do what a recorded batch did to its bank to another one; nothing is asked.

    Args:
        memory: The other bank.
        batch: The episodes.
        shown: What it recalled for them now.
        records: What was recorded of them.
        written: The old bank's memories.
        lessons: Whether the arm keeps lessons.

    Raises:
        InputError: The recalls come out differently now.
    """
    episodes = [record for record in records if isinstance(record, EpisodeRecord)]
    if [found.names for found in shown] != [record.shown for record in episodes]:
        raise InputError(
            "a bank cannot be taken back to before its first error: its recalls come out "
            "differently now; run into another folder"
        )
    if not batch.frozen:
        answers = [_answered(record, written.get(record.written)) for record in episodes]
        rewards = [record.reward for record in episodes]
        learn(memory, batch, answers, rewards, lessons=lessons)


def _answered(record: EpisodeRecord, memory: Memory | None) -> Answer:
    """The answer that an episode was learned from, as far as the bank cares.

    Args:
        record: The episode's record.
        memory: The memory that it wrote; None: none.
    """
    if record.success is None:
        return Answer(None, record.seconds, record.error)
    if memory is None:
        return Answer(Trial(record.success, record.reward), record.seconds)
    trial = Trial(
        record.success,
        REWARDS[memory.outcome],
        trajectory=memory.trajectory,
        lesson=memory.lesson,
        metadata=memory.metadata,
    )
    return Answer(trial, record.seconds)


def recover(bank: Path) -> None:
    """Undo a change of banks that was killed half way."""
    old, part = bank.with_suffix(".old"), bank.with_suffix(".part")
    if old.exists() and not bank.exists():
        old.rename(bank)
    for left in (old, part):
        shutil.rmtree(left, ignore_errors=True)


def change(bank: Path) -> None:
    """Put the new bank in place of the old one."""
    if bank.exists():
        bank.rename(bank.with_suffix(".old"))
    bank.with_suffix(".part").rename(bank)
    shutil.rmtree(bank.with_suffix(".old"), ignore_errors=True)


def before_first_error(batches: Sequence[Sequence[Record]]) -> int:
    """How many batches come before the first one with an error."""
    for place, batch in enumerate(batches):
        if any(isinstance(record, EpisodeRecord) and record.error for record in batch):
            return place
    return len(batches)
