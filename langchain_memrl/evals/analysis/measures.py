"""The columns of every table: which numbers of a run are shown, and what they mean."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from langchain_memrl.evals.analysis.metrics import latency_of
from langchain_memrl.evals.analysis.runs import Run, last


@dataclass(frozen=True, slots=True)
class Measure:
    """One column: a number of every run.

    Attributes:
        key: Its name in the data.
        title: Its name in tables.
        meaning: What it says, in one sentence.
        of: Takes it from a run.
        digits: Digits after the point.
    """

    key: str
    title: str
    meaning: str
    of: Callable[[Run], float]
    digits: int = 3


MEASURES = (
    Measure(
        "success",
        "success",
        "Share of the answered tasks that were solved, in the last epoch.",
        lambda run: last(run.success),
    ),
    Measure(
        "mean_success",
        "success, all epochs",
        "The same over all epochs: what the arm was worth while it learned. Less noisy.",
        lambda run: run.mean_success,
    ),
    Measure(
        "cumulative",
        "solved once (CSR)",
        "Share of the tasks that were solved at least once. It rises without memory too, because "
        "tasks are tried again.",
        lambda run: last(run.cumulative),
    ),
    Measure(
        "forgetting",
        "forgetting",
        "The paper's number: the share of an epoch's failures that were solved before; mean over "
        "the epochs after the first. An arm that solves nearly all has few failures, so this can "
        "be large: read 'lost' to compare arms.",
        lambda run: mean(run.forgetting[1:]),
    ),
    Measure(
        "lost",
        "lost",
        "Of the tasks solved in an earlier epoch, the share that failed now; mean over the epochs "
        "after the first. 0: nothing that was solved was lost again.",
        lambda run: mean(run.lost[1:]),
    ),
    Measure(
        "transfer",
        "transfer",
        "Success on tasks that were never trained on, with the bank frozen.",
        lambda run: run.transfer,
    ),
    Measure(
        "regret",
        "regret",
        "How much more often than the oracle the arm failed the average task, over all epochs "
        "together. The oracle is handed the right memory.",
        lambda run: last(run.regret),
        2,
    ),
    Measure(
        "q_correlation",
        "Q and success, r",
        "Pearson correlation between the mean Q of the memories shown and success, over single "
        "episodes. 0: Q says nothing about success.",
        lambda run: run.q_correlation,
        2,
    ),
    Measure(
        "never_updated",
        "never updated",
        "Share of the memories in the bank whose Q never moved.",
        lambda run: run.banks[-1].never_updated if run.banks else math.nan,
        2,
    ),
    Measure(
        "bank",
        "memories",
        "Memories in the bank at the end.",
        lambda run: run.banks[-1].size if run.banks else math.nan,
        0,
    ),
    Measure(
        "tokens",
        "tokens",
        "Tokens sent and received per episode, summaries included.",
        lambda run: run.tokens,
        0,
    ),
    Measure("calls", "calls", "Calls of the model per episode.", lambda run: run.calls, 2),
    Measure(
        "ms",
        "ms",
        "Milliseconds per episode, median.",
        lambda run: 1000 * latency_of(run.seconds).median,
        2,
    ),
    Measure(
        "ms_p95",
        "ms, 95 %",
        "Milliseconds that 95 % of the episodes stay below.",
        lambda run: 1000 * latency_of(run.seconds).p95,
        2,
    ),
    Measure(
        "unanswered",
        "unanswered",
        "Episodes in which the environment failed. They are in no share: they say nothing about "
        "the arm.",
        lambda run: run.unanswered,
        0,
    ),
)
BY_KEY = {measure.key: measure for measure in MEASURES}
SUMMED = ("unanswered",)
"""Counts, which are added up over runs; all others are averaged."""


def mean(values: Sequence[float]) -> float:
    """Mean of what is known; NaN are left out."""
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan
