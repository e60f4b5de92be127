"""Settings: one frozen dataclass per concern, one default in one place, checked when made."""

import math
from dataclasses import dataclass, replace
from numbers import Complex, Real
from typing import Any, Literal, get_args

from langchain_memrl.errors import ConfigError, RewardError, RewardTypeError
from langchain_memrl.types import Normalization, Outcome


def _require(condition: bool, name: str, value: Any, expected: str) -> None:
    if not condition:
        raise ConfigError(f"{name} is {value!r}; expected {expected}")


def _is_number(value: Any) -> bool:
    """Whether `value` is a finite real number and not a bool."""
    return not isinstance(value, bool) and isinstance(value, int | float) and math.isfinite(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 2**53


@dataclass(frozen=True, slots=True)
class RecallConfig:
    """How memories are chosen. Never saved: every call may bring its own.

    Attributes:
        k: How many memories to return (the paper's k2).
        fetch_k: How many of the most similar intents form the pool (the paper's k1).
        score_threshold: Smallest cosine an intent needs to enter the pool (the paper's delta):
            a number in [-1, 1], `"auto"` for the bank's own calibration, None for no gate.
        q_weight: Weight of Q in the score, from 0 (similarity only) to 1 (Q only); the
            paper's lambda.
        normalization: `"zscore"` standardises similarity by the bank and Q by the pool, `"pool"`
            both by the pool, `"none"` leaves both raw.
        epsilon: Chance with which the whole choice is k random candidates.
        holdout: Share of the episodes, drawn at random, in which nothing is shown, so that `lift`
            can tell what memories are worth. The same episode is always on the same side.
        untrusted: Whether memories in quarantine may be chosen too; see `TrustConfig`.
        stop_when_harmful: Whether nothing is shown any more once memories have been found to harm:
            once the interval of `lift` lies below zero.
        distinct: Whether memories whose lessons are near-identical count as one while there are
            others to choose: of each such group the best comes first (see `core/likeness.py`).
        max_per_source: At most so many of the k may have the same `Memory.source`; None for any.

    Raises:
        ConfigError: When a value is out of its range.
    """

    k: int = 5
    fetch_k: int = 10
    score_threshold: float | Literal["auto"] | None = "auto"
    q_weight: float = 0.5
    normalization: Normalization = "zscore"
    epsilon: float = 0.0
    holdout: float = 0.0
    stop_when_harmful: bool = False
    distinct: bool = True
    max_per_source: int | None = None
    untrusted: bool = False

    def __post_init__(self) -> None:
        _require(_is_count(self.k), "k", self.k, "a whole number of at least 1")
        _require(_is_count(self.fetch_k), "fetch_k", self.fetch_k, "a whole number of at least 1")
        gate = self.score_threshold
        _require(
            gate is None or gate == "auto" or (_is_number(gate) and -1 <= gate <= 1),
            "score_threshold",
            gate,
            'a number in [-1, 1], "auto" or None',
        )
        for name in ("q_weight", "epsilon", "holdout"):
            value = getattr(self, name)
            _require(_is_number(value) and 0 <= value <= 1, name, value, "a number in [0, 1]")
        for name in ("stop_when_harmful", "distinct", "untrusted"):
            value = getattr(self, name)
            _require(isinstance(value, bool), name, value, "True or False")
        most = self.max_per_source
        _require(
            most is None or _is_count(most),
            "max_per_source",
            most,
            "a whole number of at least 1, or None",
        )
        allowed = get_args(Normalization)
        _require(
            self.normalization in allowed, "normalization", self.normalization, f"one of {allowed}"
        )


PRESETS: dict[str, RecallConfig] = {
    "alfworld": RecallConfig(score_threshold=0.62, fetch_k=5, k=3, distinct=False),
    "bigcodebench": RecallConfig(score_threshold=0.38, distinct=False),
    "hle": RecallConfig(score_threshold=0.25, fetch_k=5, k=3, distinct=False),
    "lifelong-db": RecallConfig(score_threshold=0.37, distinct=False),
    "lifelong-os": RecallConfig(score_threshold=0.50, distinct=False),
}
"""The paper's settings per benchmark (its fixed thresholds, k1 and k2; no choice of lessons)."""


@dataclass(frozen=True, slots=True)
class LearningConfig:
    """How Q moves. Given when a bank is created and saved with it.

    Attributes:
        step_size: The paper's alpha in `Q <- Q + alpha (reward - Q)`, in [0, 1].
        q_init: Q of a new memory; inside `reward_range`.
        reward_range: Lowest and highest reward.
        success_reward: What an evaluator's `True` means; None means the top of the range.
        failure_reward: What an evaluator's `False` means; None means the bottom of the range.

    Raises:
        ConfigError: When a value is out of its range.
    """

    step_size: float = 0.3
    q_init: float = 0.0
    reward_range: tuple[float, float] = (-1.0, 1.0)
    success_reward: float | None = None
    failure_reward: float | None = None

    def __post_init__(self) -> None:
        _require(
            _is_number(self.step_size) and 0 <= self.step_size <= 1,
            "step_size",
            self.step_size,
            "a number in [0, 1]",
        )
        bounds = self.reward_range
        _require(
            isinstance(bounds, tuple | list)
            and len(bounds) == 2
            and all(map(_is_number, bounds))
            and bounds[0] < bounds[1]
            and math.isfinite(bounds[1] - bounds[0]),
            "reward_range",
            bounds,
            "two finite numbers, the lower first, with a finite distance",
        )
        low, high = float(bounds[0]), float(bounds[1])
        object.__setattr__(self, "reward_range", (low, high))
        defaults = {"q_init": 0.0, "success_reward": high, "failure_reward": low}
        for name, default in defaults.items():
            value = getattr(self, name)
            value = default if value is None else value
            _require(
                _is_number(value) and low <= value <= high,
                name,
                value,
                f"a number inside reward_range ({low:g}, {high:g})",
            )
            object.__setattr__(self, name, float(value))

    def changed(self, **changes: Any) -> "LearningConfig":
        """A checked copy with some settings replaced.

        Success and failure rewards that are the ends of the range move with it.
        """
        if "reward_range" in changes:
            low, high = self.reward_range
            ends = {"failure_reward": low, "success_reward": high}
            moving = {name: None for name, end in ends.items() if getattr(self, name) == end}
            changes = moving | changes
        try:
            return replace(self, **changes)
        except TypeError as error:
            raise ConfigError(f"unknown setting in {sorted(changes)}") from error

    def reward(self, value: Any) -> float:
        """Check one reward and return it as a float.

        Raises:
            RewardTypeError: For a bool, a str, or anything that is not a number.
            RewardError: For NaN, infinities and numbers outside `reward_range`.
        """
        number = self.number(value)
        low, high = self.reward_range
        if not low <= number <= high:
            raise RewardError(f"reward is {number!r}; {self._expected}")
        return number

    @property
    def _expected(self) -> str:
        low, high = self.reward_range
        return f"expected a finite number in [{low:g}, {high:g}]"

    def number(self, value: Any) -> float:
        """Check that a reward is a finite number, in the range or not, and return it as a float.

        Raises:
            RewardTypeError: For a bool, a str, or anything that is not a number.
            RewardError: For NaN and infinities.
        """
        expected = self._expected
        if type(value).__name__ in ("bool", "bool_"):
            raise RewardTypeError(
                f"reward is the bool {value}; {expected}: "
                f"use {self.success_reward:g} for success and {self.failure_reward:g} for failure"
            )
        complex_ = isinstance(value, Complex) and not isinstance(value, Real)
        if isinstance(value, str | bytes) or complex_ or not hasattr(value, "__float__"):
            raise RewardTypeError(f"reward is a {type(value).__name__}; {expected}")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        except (TypeError, ValueError) as error:
            raise RewardTypeError(f"reward is a {type(value).__name__}; {expected}") from error
        if not math.isfinite(number):
            raise RewardError(f"reward is {number!r}; {expected}")
        return number

    def outcome(self, reward: float | None) -> Outcome:
        """Success above the middle of `reward_range`, failure below, unknown at it or for None."""
        middle = sum(self.reward_range) / 2
        if reward is None or reward == middle:
            return "unknown"
        return "success" if reward > middle else "failure"


@dataclass(frozen=True, slots=True)
class TrustConfig:
    """Whose memories start in quarantine, when they leave it, how many there may be. Saved.

    A memory in quarantine is kept, but only recalled with `untrusted=True`. What is made of one, or
    written by an episode that was shown one, starts there too.

    Attributes:
        trusted_sources: Sources (see `Memory.source`) whose memories are trusted from the start;
            None trusts every source.
        release_after: After how many rewards that are successes, each of another episode and none
            of the one that wrote it, a memory leaves quarantine.
        max_memories: How many memories a namespace holds at most, documents of other retrievers
            aside; None for any number. A new one beyond it takes the place of the one in
            quarantine, else of the one with the lowest Q, the oldest of several, that is not
            pinned, which is forgotten.

    Raises:
        ConfigError: When a value is unusable.
    """

    trusted_sources: tuple[str, ...] | None = None
    release_after: int = 2
    max_memories: int | None = None

    def __post_init__(self) -> None:
        sources = self.trusted_sources
        usable = sources is None or (
            isinstance(sources, tuple | list | set | frozenset)
            and all(isinstance(one, str) and one for one in sources)
        )
        _require(usable, "trusted_sources", sources, "None or a list of sources")
        if sources is not None:
            object.__setattr__(self, "trusted_sources", tuple(sorted(set(sources))))
        count, most = self.release_after, self.max_memories
        _require(_is_count(count), "release_after", count, "a whole number of at least 1")
        expected = "a whole number of at least 1, or None"
        _require(most is None or _is_count(most), "max_memories", most, expected)

    def trusts(self, source: str) -> bool:
        """Whether memories of a source are trusted from the start."""
        return self.trusted_sources is None or source in self.trusted_sources
