"""What the bench finds: a line per call, bank size and dimension."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from langchain_memrl.bench.timing import Times

Say = Callable[[str], None]
"""Told what is measured next."""


PEER, UPDATE = "peer: ", "peer update: "
"""How the names of other stores begin in `Row.what`."""
SERVER = "PostgreSQL: "
"""How calls of a bank on a server begin there."""


class Goal(NamedTuple):
    """`ours <= factor * floor + extra`, in the unit of the row. A factor of 0 needs no floor."""

    factor: float
    extra: float = 0.0


class Row(NamedTuple):
    """One line of the table.

    Attributes:
        what: The call, or what was counted.
        size: Memories in the bank; 0 where it does not matter.
        dimension: Numbers per vector; 0 where they do not matter.
        times: What it took.
        floor: What it is compared with; empty for nothing.
        floor_times: What that took.
        goal: How the two should compare, or None.
        unit: Of all these numbers.
        of: Which of the times the line is about.
        error: What was wrong with the answers; empty for nothing.
    """

    what: str
    size: int
    dimension: int
    times: Times
    floor: str = ""
    floor_times: Times | None = None
    goal: Goal | None = None
    unit: str = "ms"
    of: Literal["median", "p99", "largest"] = "median"
    error: str = ""

    @property
    def value(self) -> float:
        """The number the line is about."""
        return float(getattr(self.times, self.of))

    @property
    def floor_value(self) -> float | None:
        """The same of the floor."""
        return None if self.floor_times is None else float(getattr(self.floor_times, self.of))

    @property
    def ratio(self) -> float | None:
        """Ours over the floor's; None without a floor."""
        return self.value / self.floor_value if self.floor_value else None

    @property
    def is_met(self) -> bool | None:
        """Whether the goal is met; None without a goal."""
        if self.goal is None:
            return None
        limit = self.goal.factor * (self.floor_value or 0.0) + self.goal.extra
        return self.value <= limit and not self.error


class Found(NamedTuple):
    """Rows, and what could not be measured, with the reason."""

    rows: list[Row]
    missing: dict[str, str]
