"""Arms: configurations of the same parts. Only what is kept and how it is ranked differs.

Every arm recalls, reinforces and remembers through `EpisodicMemory`. The simple rivals take the
pool of a recall and put it into another order; what they show is recorded like any recall.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from langchain_memrl.config import LearningConfig
from langchain_memrl.errors import InputError
from langchain_memrl.evals.environment import Suite
from langchain_memrl.evals.rankings import RANKINGS

SIMILARITY = {"q_weight": 0.0}
OWN_INTENT = {"q_weight": 0.0, "score_threshold": 1.0, "fetch_k": 1}
UNGATED = {"q_weight": 0.0, "score_threshold": None}
PLAIN = {"normalization": "none", "score_threshold": None}


@dataclass(frozen=True, slots=True)
class Arm:
    """One configuration.

    Attributes:
        name: Its name in records and figures.
        about: What it is, in a few words.
        recall: Settings of `recall` that differ from the defaults.
        step_size: How fast Q moves; 0 never.
        remembers: Whether it has a bank at all.
        lessons: Whether it keeps lessons; if not, raw trajectories.
        ranking: `"score"`, the product's own, or a name in `RANKINGS`.
        shuffled: Whether the rewards of a batch are shuffled before the bank learns them.
        sample: Whether every try is an independent draw.
        truth: Whether it may only see memories that truly help.
    """

    name: str
    about: str
    recall: Mapping[str, Any] = field(default_factory=dict)
    step_size: float = LearningConfig().step_size
    remembers: bool = True
    lessons: bool = True
    ranking: str = "score"
    shuffled: bool = False
    sample: bool = False
    truth: bool = False

    def __post_init__(self) -> None:
        if self.ranking != "score" and self.ranking not in RANKINGS:
            raise InputError(f"ranking is {self.ranking!r}; expected score or one of {[*RANKINGS]}")

    def as_settings(self) -> dict[str, Any]:
        """As plain values, for the header of the records."""
        return asdict(self)


ARMS: dict[str, Arm] = {
    arm.name: arm
    for arm in (
        Arm("none", "no memory", remembers=False),
        Arm(
            "pass@k",
            "a fresh try in each epoch, no memory; only its cumulative success means anything",
            remembers=False,
            sample=True,
        ),
        Arm("reflexion", "the latest attempt at the same task", OWN_INTENT, 0, ranking="latest"),
        Arm("rag", "raw trajectories by similarity, no gate", UNGATED, 0, lessons=False),
        Arm("memp", "lessons by similarity", SIMILARITY, 0),
        Arm("memrl", "lessons by similarity and Q: the defaults"),
        Arm("memrl-rag", "raw trajectories by similarity and Q", lessons=False),
        Arm("memrl-plain", "MemRL without normalisation and gate", PLAIN),
        Arm(
            "success-rate",
            "by the share of successes after it was shown, with a prior",
            SIMILARITY,
            0,
            ranking="success-rate",
        ),
        Arm("last-success", "last success first", SIMILARITY, 0, ranking="last-success"),
        Arm("shrunk", "similarity plus shrunk advantage", SIMILARITY, 0, ranking="shrunk"),
        Arm("placebo", "MemRL, but told the rewards of other episodes", shuffled=True),
        Arm("oracle", "only memories that truly help", UNGATED, 0, truth=True),
    )
}


def choose_arms(
    names: Sequence[str] | None, suite: Suite, *, guard: bool, batch: int
) -> tuple[Arm, ...]:
    """Arms by name, in the order given; all that make sense for a suite where None are named.

    Raises:
        InputError: An unknown name, one twice, or an oracle where the suite knows no truth, or a
            placebo without other episodes in its batch.
    """
    if names is None:
        # Under the guard there is no earlier attempt at the same task that Reflexion could see;
        # in a batch of one there are no rewards of other episodes.
        useless = {"oracle": not suite.knows_truth, "reflexion": guard, "placebo": batch < 2}
        return tuple(arm for name, arm in ARMS.items() if not useless.get(name))
    unknown = [name for name in names if name not in ARMS]
    if unknown or not names:
        raise InputError(
            f"unknown arm {', '.join(unknown) or '(none)'}; known are {', '.join(ARMS)}"
        )
    if len(set(names)) < len(names):
        raise InputError(f"an arm is named twice in {', '.join(names)}")
    if "oracle" in names and not suite.knows_truth:
        raise InputError(f"the suite {suite.name} knows no truth, so it has no oracle arm")
    if batch < 2 and any(ARMS[name].shuffled for name in names):
        raise InputError(
            "placebo is told the rewards of the other episodes of its batch, and --batch is "
            f"{batch}; give at least 2"
        )
    return tuple(ARMS[name] for name in names)
