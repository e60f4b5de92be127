"""Several experiments side by side: what each solved, gained, kept and passed on."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from langchain_memrl.evals.analysis.intervals import Interval, compare
from langchain_memrl.evals.analysis.reading import Experiment
from langchain_memrl.evals.analysis.tables import MEMRL, NONE, RAG, Row, Tables

TRUTH = "oracle"
"""The agent that does what a benchmark calls right."""


class Truth(NamedTuple):
    """What the right solutions of a benchmark pass in its environment.

    Attributes:
        suite: The suite.
        solved: How many tries passed.
        tries: How many there were, answered or not.
        unanswered: In how many of them the environment failed.
        exceptions: Tasks that are known not to be solvable here, by reason.
        unexpected: Tries that failed beside them; negative where an exception passed after all.
    """

    suite: str
    solved: int
    tries: int
    unanswered: int
    exceptions: dict[str, tuple[str, ...]]
    unexpected: int


class Line(NamedTuple):
    """An experiment in a line; numbers are means over seeds, NaN where they were not measured.

    Attributes:
        place: Which of the experiments it is, from 1.
        suite: The suite.
        agent: Who tried the tasks.
        how: How the tasks were met.
        steps: "one" or "several": how many steps a try may take.
        tasks: Tasks per epoch.
        seeds: How many seeds.
        success: Share solved per arm: of the held-out tasks where there are some, else in the last
            epoch.
        over_none: `memrl` minus no memory, over the same seeds; None where one of them is missing.
        over_rag: `memrl` minus `rag`.
        lowest: `memrl` minus `rag` with the seed where that is least.
        highest: The same where it is most.
        forgetting: Of `memrl`; see `measures`.
        lost: Of `memrl`.
        transfer: Of `memrl`.
        q_correlation: Of `memrl`.
    """

    place: int
    suite: str
    agent: str
    how: str
    steps: str
    tasks: int
    seeds: int
    success: dict[str, float]
    over_none: Interval | None
    over_rag: Interval | None
    lowest: float
    highest: float
    forgetting: float
    lost: float
    transfer: float
    q_correlation: float


def is_truth(experiment: Experiment) -> bool:
    """Whether the right solutions were tried, which measures the environment."""
    return agent_of(experiment) == TRUTH


def agent_of(experiment: Experiment) -> str:
    """Who tried the tasks: the name of an agent, or of a model."""
    header = experiment.headers[0]
    agent = str(header.settings.get("agent", ""))
    return header.model or agent


def how_of(experiment: Experiment) -> str:
    """Protocol and guard in words."""
    settings = experiment.headers[0].settings
    hidden = ", own memories hidden" if settings.get("guard") else ""
    return f"{settings.get('protocol', '')}{hidden}"


def truth_of(experiment: Experiment) -> Truth:
    """How many of the right solutions pass."""
    tries = sum(run.episodes for run in experiment.runs)
    unanswered = sum(run.unanswered for run in experiment.runs)
    counts = [(run.episodes - run.unanswered, run.mean_success) for run in experiment.runs]
    solved = sum(round(share * count) for count, share in counts if count)
    exceptions: dict[str, tuple[str, ...]] = {}
    for task, reason in experiment.exceptions.items():
        exceptions[reason] = (*exceptions.get(reason, ()), task)
    failed = tries - unanswered - solved
    return Truth(
        experiment.headers[0].suite,
        solved,
        tries,
        unanswered,
        exceptions,
        failed - len(experiment.exceptions),
    )


def line_of(place: int, experiment: Experiment, tables: Tables) -> Line:
    """An experiment in a line."""
    header = experiment.headers[0]
    rows = {row.arm: row for row in tables.arms}
    steps = header.settings.get("steps")
    differences = _differences(tables)
    return Line(
        place,
        header.suite,
        agent_of(experiment),
        how_of(experiment),
        "one" if steps in (None, 1) else "several",
        max((sum(run.sizes[:1]) for run in experiment.runs), default=0),
        len({run.key.seed for run in experiment.runs}),
        {arm: row.values[tables.headline] for arm, row in rows.items()},
        _gain(tables, NONE),
        _gain(tables, RAG),
        min(differences, default=math.nan),
        max(differences, default=math.nan),
        *(_value(rows, key) for key in ("forgetting", "lost", "transfer", "q_correlation")),
    )


def _gain(tables: Tables, rival: str) -> Interval | None:
    if not {MEMRL, rival} <= set(tables.values):
        return None
    return compare(MEMRL, rival, tables.values).difference


def _differences(tables: Tables) -> Sequence[float]:
    """`memrl` minus `rag`, pair by pair."""
    left, right = tables.values.get(MEMRL, {}), tables.values.get(RAG, {})
    return [left[pair] - right[pair] for pair in left.keys() & right.keys()]


def _value(rows: dict[str, Row], key: str) -> float:
    return rows[MEMRL].values[key] if MEMRL in rows else math.nan
