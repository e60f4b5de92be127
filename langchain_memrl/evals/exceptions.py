"""What became of the tasks that cannot be solved here: counted apart, and never left unsaid."""

from collections.abc import Sequence

from langchain_memrl.evals.environment import Suite
from langchain_memrl.evals.records import EpisodeRecord

MOST = 20
"""More failures than this were expected: nobody looks through them one by one."""


def exception_lines(suite: Suite, episodes: Sequence[EpisodeRecord]) -> list[str]:
    """What to say below the shares of a run.

    Args:
        suite: The suite, with its exceptions.
        episodes: All episodes of the run.

    Returns:
        Where everything is tried once, how many pass. Then the exceptions among the tasks with
        their reasons, and, where everything is tried once, the failures that nobody expected.
    """
    lines = []
    known = [record for record in episodes if record.task in suite.exceptions]
    if suite.once:
        lines.append(f"{_solved(episodes)} of {len(episodes)} pass.")
    if known:
        lines.append(
            f"{len(known)} of {len(episodes)} tries met a task that cannot be solved here; "
            f"{_solved(known)} of them count as solved all the same:"
        )
    for reason in dict.fromkeys(suite.exceptions.values()):
        tasks = {record.task for record in known if suite.exceptions[record.task] == reason}
        if tasks:
            lines.append(f"  {', '.join(sorted(tasks, key=_number))}: {reason}")
    others = [r.task for r in episodes if not r.success and r.task not in suite.exceptions]
    if suite.once and 0 < len(others) <= MOST:
        lines.append(f"  not expected: {', '.join(dict.fromkeys(others))}")
    return lines


def _solved(episodes: Sequence[EpisodeRecord]) -> int:
    return sum(bool(record.success) for record in episodes)


def _number(task: str) -> tuple[int, str]:
    return len(task), task
