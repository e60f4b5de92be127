"""From a pool of candidates to a recall: blend, rank, choose, and what is kept about the choice."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from langchain_memrl.config import RecallConfig
from langchain_memrl.core.scoring import Scores
from langchain_memrl.core.selection import Choice, choose
from langchain_memrl.errors import InputError
from langchain_memrl.requests import Task, new_id
from langchain_memrl.shortlist import Shortlist
from langchain_memrl.store.base import Pool, RecallRecord
from langchain_memrl.types import (
    Candidate,
    Memory,
    Normalization,
    Recall,
    ScoredMemory,
    Withheld,
)

KEPT_CANDIDATES = 50
RETURNED = "returned"
"""Among the settings of a withheld recall of documents: the ids that came back all the same."""


def choose_memories(
    namespace: str,
    task: Task,
    shortlist: Shortlist | None,
    settings: RecallConfig,
    rng: np.random.Generator,
    withheld: Withheld = "",
    instead: int = 0,
) -> RecallRecord:
    """Phase B: take the k best of a ranked pool.

    Args:
        namespace: Where the pool comes from.
        task: What to recall for.
        shortlist: The ranked candidates; None where nothing can be similar.
        settings: How to rank.
        rng: Randomness of the epsilon step.
        withheld: Why nothing of the choice may be shown; empty: it may.
        instead: How many of the pool, as it came, are shown where the choice may not be.

    Returns:
        The choice, best first, with the best 50 candidates and what is needed to repeat it.
    """
    kept: dict[str, Any] = {name: getattr(settings, name) for name in settings.__slots__}
    ids: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    similarity_max, explored = None, False
    if shortlist is not None:
        pool, scores, order = shortlist.pool, shortlist.scores, shortlist.order
        similarity_max = pool.similarity_max
        kept |= shortlist.notes()
        choice = choose(
            order, settings.k, taking=shortlist.taking(), epsilon=settings.epsilon, rng=rng
        )
        explored = choice.explored
        ids = tuple(pool.ids[place] for place in choice.chosen)
        if len(ids) < min(settings.k, len(order)):
            kept["k"] = len(ids)  # a source had its share: the first k candidates are the chosen
        first = list(range(min(instead, len(pool.ids)))) if withheld else []
        if first:
            kept[RETURNED] = [pool.ids[place] for place in first]
        candidates = _candidates(pool, scores, choice, first)
    return RecallRecord(
        namespace=namespace,
        episode_id=task.episode_id or "",
        recall_id=new_id(),
        intent=task.intent,
        memory_ids=() if withheld else ids,
        candidates=candidates,
        settings=kept,
        similarity_max=similarity_max,
        explored=explored,
        holdout=settings.holdout if task.episode_id else 0.0,
        withheld=withheld if ids else "",
    )


def _candidates(
    pool: Pool, scores: Scores, choice: Choice, first: Sequence[int]
) -> tuple[Candidate, ...]:
    """The choice, then what was shown in its place, then the best of the rest: 50, or all those."""
    best = list(dict.fromkeys([*choice.chosen.tolist(), *first]))
    size = max(KEPT_CANDIDATES, len(best))
    best = list(dict.fromkeys([*best, *choice.order.tolist()]))[:size]
    numbers = (
        pool.similarity,
        pool.q_values,
        pool.updates,
        scores.similarity_part,
        scores.q_part,
        scores.score,
        choice.probability,
    )
    columns = [values[best].tolist() for values in numbers]
    return tuple(map(Candidate, [pool.ids[place] for place in best], *columns))


def document_settings(
    k: int,
    q_weight: float,
    normalization: Normalization,
    epsilon: float,
    holdout: float,
    stop_when_harmful: bool,
) -> RecallConfig:
    """Settings for a pool that another retriever found: all of it, without a gate.

    `"zscore"` stands for `"pool"`: a bank knows no similarities of documents it does not hold.
    """
    return RecallConfig(
        k=k,
        score_threshold=None,
        q_weight=q_weight,
        normalization="pool" if normalization == "zscore" else normalization,
        epsilon=epsilon,
        holdout=holdout,
        stop_when_harmful=stop_when_harmful,
        distinct=False,
    )


def present(
    record: RecallRecord, memories: Mapping[str, Memory], documents: Mapping[str, Any] | None = None
) -> Recall:
    """A recall as the caller sees it; memories that no longer exist are left out.

    A withheld one shows nothing, or, among documents, what the base put first.
    """
    shown = record.settings.get(RETURNED, ()) if record.withheld else record.memory_ids
    numbers = {candidate.id: candidate for candidate in record.candidates}
    return Recall(
        episode_id=record.episode_id or None,
        recall_id=record.recall_id,
        namespace=record.namespace,
        intent=record.intent,
        memories=tuple(
            ScoredMemory(
                memory=memories[id],
                similarity=numbers[id].similarity,
                score=numbers[id].score,
                similarity_part=numbers[id].similarity_part,
                q_part=numbers[id].q_part,
                document=None if documents is None else documents[id],
            )
            for id in shown
            if id in memories and id in numbers
        ),
        candidates=record.candidates,
        similarity_max=record.similarity_max,
        explored=record.explored,
        settings=record.settings,
        withheld=record.withheld,
        holdout=record.holdout,
        document_keys=record.document_keys,
    )


def as_record(recall: Recall, ids: Sequence[str] | None = None) -> RecallRecord:
    """What to record of a recall: those of its memories that reached the prompt.

    Of a withheld one nothing is recorded as shown, whatever came back in the place of its choice.

    Raises:
        InputError: It has no episode id, or did not choose one of the ids.
    """
    if recall.episode_id is None:
        raise InputError("the recall has no episode id; recall with episode_id=... to record it")
    shown = recall.ids if ids is None else tuple(dict.fromkeys(ids))
    strange = set(shown) - set(recall.ids)
    if strange:
        raise InputError(f"the recall did not choose {sorted(strange)}; expected some of its ids")
    return RecallRecord(
        namespace=recall.namespace,
        episode_id=recall.episode_id,
        recall_id=recall.recall_id,
        intent=recall.intent,
        memory_ids=() if recall.withheld else shown,
        candidates=recall.candidates,
        settings=recall.settings,
        similarity_max=recall.similarity_max,
        explored=recall.explored,
        holdout=recall.holdout,
        withheld=recall.withheld,
        document_keys=recall.document_keys,
    )
