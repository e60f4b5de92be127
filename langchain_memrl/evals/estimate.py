"""What a run will cost, before it starts: tries, tokens and time."""

from typing import NamedTuple

from langchain_memrl.evals.environment import Setup, Suite
from langchain_memrl.evals.running.protocols import plan
from langchain_memrl.evals.settings import RunSettings


class Estimate(NamedTuple):
    """What a run costs, roughly.

    Attributes:
        tries: How many tasks are tried, counted over arms, seeds and epochs; this is exact.
        prompt_tokens: Tokens sent.
        completion_tokens: Tokens received.
        seconds: How long it takes.
    """

    tries: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float

    def __str__(self) -> str:
        """One line."""
        tokens = (
            f"about {_short(self.prompt_tokens)} tokens sent and "
            f"{_short(self.completion_tokens)} received"
            if self.prompt_tokens
            else "no tokens"
        )
        return f"{self.tries} tries, {tokens}, about {_time(self.seconds)}"


def estimate(suite: Suite, settings: RunSettings, jobs: int = 1) -> Estimate | None:
    """What a run costs; None where the suite does not know.

    Args:
        suite: The suite, prepared.
        settings: What is run.
        jobs: How many tasks are tried at a time.
    """
    if suite.typical is None:
        return None
    tries = 0
    for world in settings.worlds:
        tasks = suite.make(Setup(world, settings.first_seed, settings.tasks)).tasks
        tries += sum(len(batch.tasks) for batch in plan(settings, tasks, settings.first_seed))
    tries *= len(settings.arms) * settings.seeds
    typical = suite.typical
    return Estimate(
        tries,
        tries * typical.prompt_tokens,
        tries * typical.completion_tokens,
        tries * typical.seconds / min(jobs, settings.batch),
    )


def _short(count: float) -> str:
    for size, name in ((1e6, "million"), (1e3, "thousand")):
        if count >= size:
            return f"{count / size:.3g} {name}"
    return f"{count:.0f}"


def _time(seconds: float) -> str:
    for size, name in ((3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{max(1, seconds):.0f} seconds"
