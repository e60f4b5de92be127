"""Why each candidate of a recall was chosen, or was not."""

from collections.abc import Sequence
from dataclasses import dataclass

from langchain_memrl.types import Candidate, Recall


@dataclass(frozen=True, slots=True)
class Explanation:
    """One candidate of a recall: the numbers that ranked it, and what they come to.

    Attributes:
        id: The memory.
        chosen: Whether the recall returned it.
        place: Its place by score among the candidates, from 1.
        by_similarity: Its place by similarity alone.
        by_q: Its place by Q alone.
        similarity: Cosine between the task and its intent.
        similarity_part: The same, standardised.
        q_value: Its Q then.
        q_part: The same, standardised.
        updates: Rewards behind that Q.
        score: What ranked it: `(1 - q_weight) * similarity_part + q_weight * q_part`.
        probability: The chance with which it was chosen, exploration included.
        sentence: All that in words.
    """

    id: str
    chosen: bool
    place: int
    by_similarity: int
    by_q: int
    similarity: float
    similarity_part: float
    q_value: float
    q_part: float
    updates: int
    score: float
    probability: float
    sentence: str

    def __str__(self) -> str:
        return self.sentence


def explain(recall: Recall) -> list[Explanation]:
    """Why each candidate was chosen, or was not; best first.

    Args:
        recall: The recall; it knows its best 50 candidates.
    """
    candidates = sorted(recall.candidates, key=lambda one: -one.score)
    similar = _places([one.similarity for one in candidates])
    useful = _places([one.q_value for one in candidates])
    return [
        _explanation(recall, candidate, place, len(candidates), similar[place], useful[place])
        for place, candidate in enumerate(candidates)
    ]


def _places(values: Sequence[float]) -> list[int]:
    """Places from 1, largest first; equal values share the better place."""
    return [1 + sum(other > value for other in values) for value in values]


def _explanation(
    recall: Recall, one: Candidate, place: int, count: int, similar: int, useful: int
) -> Explanation:
    chosen = one.id in recall.ids
    lowest = min((other.score for other in recall.candidates if other.id in recall.ids), default=0)
    verdict = _verdict(recall, chosen, chosen or bool(recall.ids and one.score > lowest))
    rewards = f"{one.updates} reward{'s' * (one.updates != 1)}"
    behind = f"Q {one.q_value:+.2f} after {rewards} (place {useful})"
    if not one.updates:
        behind = f"no reward yet, so Q is {one.q_value:+.2f} (place {useful})"
    sentence = (
        f"{verdict}, place {place + 1} of {count}: score {one.score:+.2f} from "
        f"similarity {one.similarity:.2f} (place {similar}) and {behind}"
    )
    return Explanation(
        one.id,
        chosen,
        place + 1,
        similar,
        useful,
        one.similarity,
        one.similarity_part,
        one.q_value,
        one.q_part,
        one.updates,
        one.score,
        one.probability,
        f"{sentence}.",
    )


def _verdict(recall: Recall, chosen: bool, above: bool) -> str:
    if recall.withheld and recall.document_keys is not None:
        why = "held out by chance" if recall.withheld == "held_out" else "found to harm"
        return f"{'Returned' if chosen else 'Not returned'} without Q, which was {why}"
    if recall.withheld == "held_out":
        return "Held out by chance"
    if recall.withheld == "harmful":
        return "Not shown, because memories were found to harm"
    if chosen and recall.explored:
        return "Chosen at random"
    if above and not chosen and not recall.explored:
        return "Passed over: its lesson is like a better one, or its source had its share"
    return "Chosen" if chosen else "Not chosen"
