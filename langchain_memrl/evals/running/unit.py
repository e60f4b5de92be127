"""One unit of an experiment: one arm meets one world, drawn by one seed.

For every batch: recall for all tasks, try them, then let the bank learn, in the batch's order.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from langchain_memrl.config import LearningConfig
from langchain_memrl.errors import MemRLError
from langchain_memrl.evals.arms import Arm
from langchain_memrl.evals.environment import Setup, Situation, Suite
from langchain_memrl.evals.rankings import Tally
from langchain_memrl.evals.records import BankRecord, EpisodeRecord
from langchain_memrl.evals.running.acting import Actor, Answer, Journal
from langchain_memrl.evals.running.checking import make_environment
from langchain_memrl.evals.running.learning import bank_record, learn, shuffle
from langchain_memrl.evals.running.protocols import Batch, plan
from langchain_memrl.evals.running.rebuilding import (
    before_first_error,
    change,
    learn_again,
    read_memories,
    recover,
)
from langchain_memrl.evals.running.recalling import NOTHING_SHOWN, Recaller, Shown
from langchain_memrl.evals.settings import RunSettings
from langchain_memrl.memory import EpisodicMemory

Record = EpisodeRecord | BankRecord
IN_MEMORY = ":memory:"
JOURNAL = "answers.journal"


class Unit(NamedTuple):
    """Which unit: its records carry these three."""

    world: str
    arm: str
    seed: int


def units(settings: RunSettings) -> list[Unit]:
    """All units of a run, in the order in which their records stand in the file."""
    seeds = range(settings.first_seed, settings.first_seed + settings.seeds)
    return [
        Unit(world, arm.name, seed)
        for world in settings.worlds
        for seed in seeds
        for arm in settings.arms
    ]


class UnitRun:
    """A unit that is run, or run on.

    Args:
        suite: The suite.
        settings: The run's settings.
        unit: Which unit.
        model: The chat model, where the suite asks one.
        folder: Where its bank and journal are; None keeps the bank in memory.
        workers: How many tasks are tried at a time.
        pause: Waits before a failing environment is asked again.
    """

    def __init__(
        self,
        suite: Suite,
        settings: RunSettings,
        unit: Unit,
        *,
        model: Any = None,
        folder: Path | None = None,
        workers: int = 1,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.unit = unit
        self._settings = settings
        self._arm: Arm = next(arm for arm in settings.arms if arm.name == unit.arm)
        self._environment = make_environment(
            suite, Setup(unit.world, unit.seed, settings.tasks, model)
        )
        # A suite need not care about `tasks`: the first ones are taken here.
        tasks = self._environment.tasks[: settings.tasks]
        self.batches = plan(settings, tasks, unit.seed)
        self._folder = folder
        self._bank = None if folder is None else folder / "bank"
        self._workers = workers
        self._pause = pause
        self._tally = Tally()
        self._errors_in_a_row = 0

    @property
    def length(self) -> int:
        """How many records it has in the end."""
        return sum(len(batch.tasks) + batch.epoch_ends for batch in self.batches)

    def complete(self, earlier: Sequence[Record]) -> int:
        """How many of the first of these records belong to complete batches."""
        return sum(map(len, self._split(earlier)))

    def run(self, earlier: Sequence[Record] = ()) -> Iterator[list[Record]]:
        """Run what is not among the complete batches of the earlier records.

        Yields:
            The records of each batch, with that of the bank where an epoch ends. The bank has
            learned them before.
        """
        done = self._split(earlier)
        for records in done:
            self._count(records)
        rest = self.batches[len(done) :]
        if not rest:
            return
        actor = self._actor()
        if not self._arm.remembers:
            for batch in rest:
                yield self._run_batch(actor, None, batch)
            return
        if self._bank is not None:
            recover(self._bank)
        with self._open(self._bank) as memory:
            for batch in rest:
                records = self._run_batch(actor, memory, batch)
                self._count(records)
                yield records

    def take_back(self, earlier: Sequence[Record]) -> int:
        """Forget the first batch with an error and all that come after it.

        What the bank learned later rests on what it could not learn there. The bank of the batches
        before is made anew, by what the records and the old bank say.

        Returns:
            How many of the records stay.
        """
        done = self._split(earlier)
        done = done[: before_first_error(done)]
        if self._arm.remembers and self._bank is not None:
            recover(self._bank)
            written = read_memories(self._bank) if self._bank.exists() else {}
            with self._open(self._bank.with_suffix(".part")) as memory:
                recaller = self._recaller(memory)
                for batch, records in zip(self.batches, done, strict=False):
                    shown = recaller.recall(batch, self._situations(batch), self._tally)
                    learn_again(memory, batch, shown, records, written, lessons=self._arm.lessons)
                    self._count(records)
            change(self._bank)
            self._tally = Tally()
        return sum(map(len, done))

    # --- one batch ------------------------------------------------------------------------------

    def _run_batch(self, actor: Actor, memory: EpisodicMemory | None, batch: Batch) -> list[Record]:
        """Recall for all, try all, learn from all; then tell."""
        situations = self._situations(batch)
        shown = [NOTHING_SHOWN] * len(situations)
        started = time.perf_counter()
        if memory is not None:
            shown = self._recaller(memory).recall(batch, situations, self._tally)
            situations = [
                replace(situation, memories=found.memories)
                for situation, found in zip(situations, shown, strict=True)
            ]
        waited = (time.perf_counter() - started) / len(situations)
        answers = actor.act(batch.episode_ids, situations)
        self._check_patience(answers)
        rewards: list[float | None] = [None] * len(answers)
        written: dict[str, str] = {}
        if memory is not None and not batch.frozen:
            rewards = [None if answer.trial is None else answer.trial.told for answer in answers]
            if self._arm.shuffled:
                rewards = shuffle(rewards, f"{self.unit.seed} {batch.first}")
            written = learn(memory, batch, answers, rewards, lessons=self._arm.lessons)
        records: list[Record] = [
            self._record(batch, place, *told, waited=waited, written=written)
            for place, told in enumerate(zip(shown, answers, rewards, strict=True))
        ]
        if batch.epoch_ends:
            records.append(bank_record(self.unit, batch.epoch, memory))
        return records

    def _recaller(self, memory: EpisodicMemory) -> Recaller:
        return Recaller(memory, self._arm, self._environment, guard=self._settings.guard)

    def _situations(self, batch: Batch) -> list[Situation]:
        return [
            Situation(
                task,
                epoch=batch.epoch,
                progress=batch.progress(place),
                lessons=self._arm.lessons and self._arm.remembers and not batch.frozen,
                sample=self._arm.sample,
            )
            for place, task in enumerate(batch.tasks)
        ]

    def _record(
        self,
        batch: Batch,
        place: int,
        shown: Shown,
        answer: Answer,
        reward: float | None,
        *,
        waited: float,
        written: dict[str, str],
    ) -> EpisodeRecord:
        """What is kept of one episode."""
        trial = answer.trial
        return EpisodeRecord(
            *self.unit,
            epoch=batch.epoch,
            step=batch.first + place,
            task=batch.tasks[place].id,
            success=None if trial is None else trial.success,
            shown=shown.names,
            q_values=shown.q_values,
            seconds=round(answer.seconds + waited, 6),
            split=batch.split,
            reward=reward,
            written=written.get(batch.episode_ids[place], ""),
            answer="" if trial is None else trial.answer,
            error=answer.error,
            prompt_tokens=0 if trial is None else trial.prompt_tokens,
            completion_tokens=0 if trial is None else trial.completion_tokens,
            calls=0 if trial is None else trial.calls,
        )

    def _check_patience(self, answers: Sequence[Answer]) -> None:
        """Stop where the environment is down: recording its errors would not be an experiment."""
        for answer in answers:
            self._errors_in_a_row = self._errors_in_a_row + 1 if answer.error else 0
            if self._errors_in_a_row >= self._settings.patience:
                raise MemRLError(
                    f"the environment failed {self._errors_in_a_row} times in a row, last with "
                    f"{answer.error}; what was answered is kept: the same command goes on here, "
                    "and with --retry-errors it asks again what got no answer before"
                )

    # --- around it ------------------------------------------------------------------------------

    def _split(self, earlier: Sequence[Record]) -> list[Sequence[Record]]:
        """The records of each complete batch; the rest is left out."""
        done, start = [], 0
        for batch in self.batches:
            end = start + len(batch.tasks) + batch.epoch_ends
            if end > len(earlier):
                break
            done.append(earlier[start:end])
            start = end
        return done

    def _count(self, records: Sequence[Record]) -> None:
        for record in records:
            if isinstance(record, EpisodeRecord):
                self._tally.add(record.shown, record.reward)

    def _actor(self) -> Actor:
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
        return Actor(
            self._environment,
            attempts=self._settings.attempts,
            arm=f"{self.unit.arm}, seed {self.unit.seed}",
            workers=self._workers,
            journal=None if self._folder is None else Journal(self._folder / JOURNAL),
            pause=self._pause,
        )

    def _open(self, bank: Path | None) -> EpisodicMemory:
        """The unit's bank with the environment's notes, each written once."""
        memory = EpisodicMemory.open(
            IN_MEMORY if bank is None else bank,
            embeddings=self._environment.embeddings(),
            learning=LearningConfig(step_size=self._arm.step_size),
            seed=self.unit.seed,
        )
        notes = [
            {"episode_id": f"note-{place}", **note}
            for place, note in enumerate(self._environment.notes)
        ]
        if notes:
            memory.remember_many(notes)
        return memory
