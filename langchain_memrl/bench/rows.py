"""What the bench finds: a line per call, bank size and dimension."""

from typing import NamedTuple

from langchain_memrl.bench.timing import Times


class Goal(NamedTuple):
    """`ours <= factor * floor + extra` (milliseconds)."""

    factor: float
    extra: float = 0.0


class Row(NamedTuple):
    """One line of the table.

    Attributes:
        what: The call.
        size: Memories in the bank.
        dimension: Numbers per vector.
        times: What it took.
        floor: What it is compared with; empty for nothing.
        floor_times: What that took.
        goal: How the two should compare, or None.
    """

    what: str
    size: int
    dimension: int
    times: Times
    floor: str = ""
    floor_times: Times | None = None
    goal: Goal | None = None

    @property
    def ratio(self) -> float | None:
        """Median over the floor's median."""
        return None if self.floor_times is None else self.times.median / self.floor_times.median

    @property
    def is_met(self) -> bool | None:
        """Whether the goal is met; None without a goal."""
        if self.goal is None or self.floor_times is None:
            return None
        limit = self.goal.factor * self.floor_times.median + self.goal.extra
        return self.times.median <= limit


class Found(NamedTuple):
    """The rows of one bank size, and what could not be measured, with the reason."""

    rows: list[Row]
    missing: dict[str, str]
