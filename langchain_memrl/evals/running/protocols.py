"""Protocols: in which order an arm meets the tasks, and when its bank learns."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_memrl.evals.environment import Task
from langchain_memrl.evals.settings import RunSettings


@dataclass(frozen=True, slots=True)
class Batch:
    """Episodes that recall together. With `epoch_ends`, the bank is recorded afterwards.

    Attributes:
        epoch: Which pass, from 0; the held-out tasks of a transfer come as one more.
        first: The number of its first episode, counted over all epochs.
        tasks: The tasks, in order.
        total: How many episodes of training there are in all.
        frozen: Whether nothing is learned.
        epoch_ends: Whether it is the last of a training epoch.
    """

    epoch: int
    first: int
    tasks: tuple[Task, ...]
    total: int
    frozen: bool = False
    epoch_ends: bool = False

    @property
    def split(self) -> str:
        """The name of its part of the tasks in the records."""
        return "held_out" if self.frozen else "train"

    @property
    def episode_ids(self) -> list[str]:
        """Ids of its episodes, unique in their bank."""
        return [f"{self.epoch}-{task.id}" for task in self.tasks]

    def progress(self, place: int) -> float:
        """Share of the training behind the episode at a place of the batch."""
        return min(1.0, (self.first + place) / self.total)


def plan(settings: RunSettings, tasks: Sequence[Task], seed: int) -> list[Batch]:
    """All batches of one unit. Every arm of a seed meets the same ones.

    Args:
        settings: The protocol, and how long it lasts.
        tasks: All tasks of the environment.
        seed: Draws the order of each epoch, and what is held out.

    Returns:
        The batches, in order. Runtime learning and transfer shuffle the tasks in every epoch.
    """
    order = random.Random(seed)  # noqa: S311 - an experiment, not a secret
    train = list(tasks)
    held_out: list[Task] = []
    if settings.protocol == "transfer":
        train, held_out = _split(train, settings.held_out, seed)
    total = len(train) * settings.epochs
    batches: list[Batch] = []
    for epoch in range(settings.epochs):
        stream = settings.protocol == "stream"
        epoch_tasks = train if stream else order.sample(train, len(train))
        batches += _cut(epoch_tasks, settings.batch, epoch, len(train) * epoch, total, frozen=False)
    return batches + _cut(held_out, settings.batch, settings.epochs, total, total, frozen=True)


def _cut(
    tasks: Sequence[Task], size: int, epoch: int, first: int, total: int, *, frozen: bool
) -> list[Batch]:
    return [
        Batch(
            epoch,
            first + start,
            tuple(tasks[start : start + size]),
            total,
            frozen,
            epoch_ends=not frozen and start + size >= len(tasks),
        )
        for start in range(0, len(tasks), size)
    ]


def _split(tasks: list[Task], share: float, seed: int) -> tuple[list[Task], list[Task]]:
    """Tasks to train on and tasks to hold out, at least one of each where there are two."""
    named = [task for task in tasks if task.held_out]
    if named:
        return [task for task in tasks if not task.held_out], named
    draw = random.Random(f"held out {seed}")  # noqa: S311
    count = min(max(1, round(share * len(tasks))), len(tasks) - 1)
    chosen = {task.id for task in draw.sample(tasks, count)}
    return (
        [task for task in tasks if task.id not in chosen],
        [task for task in tasks if task.id in chosen],
    )
