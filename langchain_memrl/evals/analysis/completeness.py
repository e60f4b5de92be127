"""What a folder lacks of what its header announces, and what the environment left unanswered."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import product

from langchain_memrl.evals.analysis.metrics import RunKey
from langchain_memrl.evals.analysis.reading import Experiment
from langchain_memrl.evals.analysis.runs import Run
from langchain_memrl.evals.records import Header

SPARSE = 0.1
"""A run with a larger share of episodes without an answer is compared with no other."""
NAMED = 4  # things that a sentence names


def announced(experiment: Experiment) -> set[RunKey]:
    """The runs that the headers announce; empty where they do not say."""
    found: set[RunKey] = set()
    for header in experiment.headers:
        settings = header.settings
        arms, worlds, seeds = (settings.get(name) for name in ("arms", "worlds", "seeds"))
        if arms and worlds and isinstance(seeds, int):
            first = settings.get("first_seed", 0)
            found |= {RunKey(*key) for key in product(worlds, arms, range(first, first + seeds))}
    return found


def whole_runs(experiment: Experiment) -> tuple[Run, ...]:
    """The runs that hold every epoch and every task, as far as that can be known.

    As many epochs as announced, all of the same tasks; and trained and held-out tasks together as
    many as in the largest run of that world (as announced, where it is the only one: a suite may
    have fewer tasks than were asked for). How many of them are held out may differ between seeds.
    """
    epochs = max(len(run.sizes) for run in experiment.runs)
    epochs = max([1, epochs, *_numbers(experiment.headers, "epochs")])
    lone = Counter(run.key.world for run in experiment.runs)
    asked = max([0, *_numbers(experiment.headers, "tasks")])
    most: dict[str, int] = {}
    for run in experiment.runs:
        largest = most.get(run.key.world, asked * (lone[run.key.world] == 1))
        most[run.key.world] = max(largest, _tasks(run))
    return tuple(
        run
        for run in experiment.runs
        if len(run.sizes) == epochs
        and min(run.sizes) == max(run.sizes)
        and _tasks(run) == most[run.key.world]
    )


def _tasks(run: Run) -> int:
    """Trained and held-out tasks of a run."""
    return max(run.sizes, default=0) + run.episodes - sum(run.sizes)


def comparable_runs(experiment: Experiment) -> tuple[Run, ...]:
    """The whole runs in which the environment answered nearly always: those that are compared."""
    return tuple(run for run in whole_runs(experiment) if run.unanswered <= SPARSE * run.episodes)


def completeness_notes(experiment: Experiment) -> list[str]:
    """What is missing, what was left out of comparisons, and why episodes have no answer."""
    return [*_unfinished(experiment), *_left_out(experiment), *_unanswered(experiment)]


def _unfinished(experiment: Experiment) -> list[str]:
    """Each arm that has fewer whole runs than it should."""
    whole = {run.key for run in whole_runs(experiment)}
    there = {run.key for run in experiment.runs}
    expected = announced(experiment) | there
    if expected == whole:
        return []
    worlds = list(dict.fromkeys(sorted(key.world for key in expected)))
    absent = [world for world in worlds if not any(key.world == world for key in there)]
    rest = {key for key in expected if key.world not in absent}
    unit = "seeds" if len(worlds) - len(absent) == 1 else "runs (worlds times seeds)"
    parts = [f"no run in {named(absent)} ({len(absent)} of {len(worlds)} worlds)"] * bool(absent)
    alike: dict[str, list[str]] = {}
    for arm in dict.fromkeys([*experiment.arms, *sorted(key.arm for key in rest)]):
        own = {key for key in rest if key.arm == arm}
        begun = len((own & there) - whole)
        words = f"{len(own & whole)} of {len(own)} {unit}" + f" and {begun} begun" * bool(begun)
        if own - whole:
            alike.setdefault(words, []).append(arm)
    for words, arms in alike.items():
        who = f"arm {arms[0]} has" if len(arms) == 1 else f"arms {', '.join(arms)} have"
        parts.append(f"{who} {words}")
    return [f"Unfinished: {'; '.join(parts)}."]


def _left_out(experiment: Experiment) -> list[str]:
    compared = {run.key for run in comparable_runs(experiment)}
    out = [run for run in experiment.runs if run.key not in compared]
    if not out:
        return []
    names = named([_name(run.key) for run in out])
    return [
        f"Left out where arms are compared, because they are not finished or have over "
        f"{SPARSE:.0%} of their episodes without an answer: {names}."
    ]


def _unanswered(experiment: Experiment) -> list[str]:
    """How many episodes have no answer, the most frequent errors and the tasks."""
    failed = [failure for run in experiment.runs for failure in run.failures]
    if not failed:
        return []
    episodes = sum(run.episodes for run in experiment.runs)
    errors = Counter(error or "no error text" for _, error in failed)
    tasks = Counter(task for task, _ in failed)
    return [
        f"{len(failed):,} of {episodes:,} episodes have no answer because the environment failed; "
        f"they are in no share. Most frequent errors: {_counted(errors)}. Tasks: {_counted(tasks)}."
    ]


def _counted(counts: Counter[str]) -> str:
    told = [f"{_short(name)} ({count:,} times)" for name, count in counts.most_common()]
    return named([one.replace("(1 times)", "(once)") for one in told])


def named(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    rest = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {rest:,} more" if rest > 0 else "")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 100 else f"{line[:99]}\u2026"


def _name(key: RunKey) -> str:
    return " ".join(filter(None, (key.arm, key.world and f"in {key.world}", f"seed {key.seed}")))


def _numbers(headers: Iterable[Header], name: str) -> list[int]:
    values = [header.settings.get(name) for header in headers]
    return [value for value in values if isinstance(value, int)]
