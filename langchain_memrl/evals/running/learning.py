"""What a bank learns from a batch, and what it holds after an epoch."""

import random
from collections.abc import Sequence
from typing import Any

from langchain_memrl.evals.records import BankRecord
from langchain_memrl.evals.running.acting import Answer
from langchain_memrl.evals.running.protocols import Batch
from langchain_memrl.inputs import is_blank
from langchain_memrl.memory import EpisodicMemory


def learn(
    memory: EpisodicMemory,
    batch: Batch,
    answers: Sequence[Answer],
    rewards: Sequence[float | None],
    *,
    lessons: bool,
) -> dict[str, str]:
    """Reward what was shown, then write what was done, both in the batch's order.

    Args:
        memory: The bank.
        batch: The episodes.
        answers: What became of them, in the same order.
        rewards: What the bank is told of each; None: nothing.
        lessons: Whether lessons are kept; if not, the trajectory stays raw.

    Returns:
        The name of the memory that each episode wrote, which is the episode's own id.
    """
    told = zip(batch.episode_ids, rewards, strict=True)
    memory.reinforce_many(
        [{"episode_id": id, "reward": reward} for id, reward in told if reward is not None]
    )
    drafts = [
        draft
        for id, task, answer in zip(batch.episode_ids, batch.tasks, answers, strict=True)
        if (draft := _draft(id, task.text, answer, lessons)) is not None
    ]
    memory.remember_many(drafts)
    return {draft["episode_id"]: draft["episode_id"] for draft in drafts}


def _draft(episode_id: str, intent: str, answer: Answer, lessons: bool) -> dict[str, Any] | None:
    """The memory that an episode writes; none where there is nothing to keep."""
    trial = answer.trial
    if trial is None:
        return None
    lesson = trial.lesson if lessons and not is_blank(trial.lesson) else None
    if lesson is None and is_blank(trial.trajectory):
        return None
    signs = {True: "success", False: "failure"}
    return {
        "episode_id": episode_id,
        "intent": intent,
        "lesson": lesson,
        "trajectory": trial.trajectory,
        "outcome": "unknown" if trial.told == 0 else signs[trial.told > 0],
        "metadata": dict(trial.metadata),
    }


def shuffle(rewards: Sequence[float | None], draw: str) -> list[float | None]:
    """The rewards of a batch given to one another; episodes without one stay without."""
    known = [reward for reward in rewards if reward is not None]
    random.Random(draw).shuffle(known)  # noqa: S311 - an experiment, not a secret
    drawn = iter(known)
    return [None if reward is None else next(drawn) for reward in rewards]


def bank_record(
    unit: tuple[str, str, int], epoch: int, memory: EpisodicMemory | None
) -> BankRecord:
    """What a bank holds, oldest first. Memories go by the name of the episode that wrote them."""
    found = [] if memory is None else memory.list(limit=None)[::-1]
    return BankRecord(
        *unit,
        epoch=epoch,
        ids=tuple(item.episode_id for item in found),
        q_values=tuple(round(item.q_value, 6) for item in found),
        updates=tuple(item.updates for item in found),
        failures=tuple(item.outcome == "failure" for item in found),
    )
