"""What is chosen for a run, checked when made; it stands in the header of the records."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal, get_args

from langchain_memrl.errors import ConfigError, InputError
from langchain_memrl.evals.arms import Arm
from langchain_memrl.evals.environment import Suite

Protocol = Literal["runtime", "transfer", "stream"]
PACKAGES = ("langchain-memrl", "langchain-core", "langgraph", "faiss-cpu", "numpy")


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Everything that decides the records.

    Attributes:
        arms: The arms.
        worlds: Variants of the suite.
        seeds: How many draws, from `first_seed` on.
        first_seed: The first of them.
        protocol: `"runtime"` (the same tasks in every epoch, the bank grows), `"transfer"`
            (train, freeze, then tasks never seen) or `"stream"` (each task once, in order).
        epochs: Passes over the tasks; a stream has one.
        batch: Episodes that recall together; the bank learns after each batch, in its order.
        guard: Whether a task may not recall memories of its own intent.
        held_out: Share of the tasks kept for the transfer.
        tasks: How many tasks; None for the suite's own number.
        attempts: How often a failing environment is asked before its error is recorded.
        patience: After how many such errors in a row the run stops.

    Raises:
        ConfigError: A value is out of its range.
    """

    arms: tuple[Arm, ...]
    worlds: tuple[str, ...] = ("",)
    seeds: int = 5
    first_seed: int = 0
    protocol: Protocol = "runtime"
    epochs: int = 3
    batch: int = 1
    guard: bool = False
    held_out: float = 0.3
    tasks: int | None = None
    attempts: int = 3
    patience: int = 10

    def __post_init__(self) -> None:
        if self.protocol not in get_args(Protocol):
            raise ConfigError(
                f"protocol is {self.protocol!r}; expected one of {get_args(Protocol)}"
            )
        if self.protocol == "stream":
            object.__setattr__(self, "epochs", 1)
        for name in ("seeds", "epochs", "batch", "attempts", "patience"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; expected at least 1")
        if self.tasks is not None and self.tasks < 1:
            raise ConfigError(f"tasks is {self.tasks}; expected at least 1")
        if not 0 < self.held_out < 1:
            raise ConfigError(f"held_out is {self.held_out}; expected a share between 0 and 1")

    def as_header(self) -> dict[str, Any]:
        """As plain values."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        arms = {arm.name: arm.as_settings() for arm in self.arms}
        return {**plain, "worlds": list(self.worlds), "arms": arms}


def choose_worlds(pattern: str | None, suite: Suite) -> tuple[str, ...]:
    """The variants of a suite that match a pattern; its standard ones without a pattern.

    Args:
        pattern: Patterns such as `alike-*`, separated by commas; `all` takes every variant.
        suite: The suite.

    Raises:
        InputError: A pattern matches nothing.
    """
    if pattern is None:
        return suite.worlds
    known = (*suite.worlds, *suite.stress)
    if pattern == "all":
        return known
    patterns = [part.strip() for part in pattern.split(",")]
    for part in patterns:
        if not any(fnmatchcase(world, part) for world in known):
            raise InputError(f"no world is called {part!r}; known are {', '.join(known)}")
    return tuple(world for world in known if any(fnmatchcase(world, part) for part in patterns))


def versions(packages: tuple[str, ...] = PACKAGES) -> Mapping[str, str]:
    """Versions of the packages that decide the numbers."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "missing"
    return found
