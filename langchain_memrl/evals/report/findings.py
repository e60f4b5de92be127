"""What an experiment comes to, in sentences, whoever won."""

from collections.abc import Sequence

from langchain_memrl.evals.analysis.completeness import completeness_notes, named
from langchain_memrl.evals.analysis.intervals import FEW, Comparison
from langchain_memrl.evals.analysis.reading import Experiment
from langchain_memrl.evals.analysis.tables import MEMP, MEMRL, RAG, Row, Tables
from langchain_memrl.evals.report.advice import OUTSIDE, PLACEBO, REFERENCES, advice, join

FAIR = {
    MEMP: "memp is the fair rival without Q: the same lessons and gate, q_weight=0.",
    RAG: "rag differs in more than Q: it keeps raw trajectories and has no gate.",
}
"""What a comparison with memrl is about."""


def findings(tables: Tables) -> list[str]:
    """Advice; then memrl against memp, RAG, the best other rival, all rivals, the placebo."""
    found = [one for one in tables.comparisons[tables.headline] if one.left == MEMRL]
    rivals = [one for one in found if _is_rival(one.right) and one.difference.count]
    told = [one for one in rivals if one.difference.count >= FEW]
    best = min(told, key=lambda one: one.difference.mean, default=None)
    sentences = [
        f"{one.sentence} {FAIR[one.right]}" if one.right in FAIR else one.sentence
        for one in rivals
        if one.right in FAIR or one is best
    ]
    placebo = [one for one in found if one.right == PLACEBO and one.difference.count >= FEW]
    if placebo and placebo[0].ahead != MEMRL:
        sentences.append(
            "memrl is not surely ahead of the placebo, whose rewards are shuffled: what it gains "
            "here need not be learned from rewards."
        )
    return [
        *advice(tables),
        *sentences[:1],
        *against_rivals(told),
        *sentences[1:],
        *below_no_memory(tables.worlds),
    ]


def against_rivals(rivals: Sequence[Comparison]) -> list[str]:
    """MemRL against its rivals in one sentence: a tie is said as plainly as a win."""
    groups = (
        ("memrl is ahead of {}", [one.right for one in rivals if one.ahead == MEMRL]),
        ("no difference can be told from {}", [one.right for one in rivals if not one.ahead]),
        ("memrl is behind {}", [one.right for one in rivals if one.ahead == one.right]),
    )
    parts = [words.format(join(names)) for words, names in groups if names]
    return [f"Against its rivals: {'; '.join(parts)}."] if len(rivals) > 1 else []


def below_no_memory(rows: Sequence[Row]) -> list[str]:
    """In which worlds an arm of the product solved less than no memory, and how surely."""
    worlds = len({row.world for row in rows})
    parts = []
    for arm in dict.fromkeys(row.arm for row in rows if row.arm not in (*REFERENCES, *OUTSIDE)):
        own = [(row.world, row.against_none) for row in rows if row.arm == arm]
        below = [(world, one) for world, one in own if one is not None and one.mean < 0]
        sure = [world for world, one in below if one.high < 0]
        if below:
            parts.append(_below(arm, len(below), sure, worlds))
    few = all(row.against_none.count < FEW for row in rows if row.against_none)
    hedge = f" (fewer than {FEW} seeds: none of this is sure)" if few else ""
    return [f"Worse than no memory, all epochs together{hedge}: {'; '.join(parts)}."] * bool(parts)


def _below(arm: str, count: int, sure: Sequence[str], worlds: int) -> str:
    if worlds == 1:
        return f"{arm}, surely" if sure else f"{arm}, but that may be chance"
    if not sure:
        return f"{arm} in {count} of {worlds} worlds, each of which may be chance"
    return f"{arm} in {count} of {worlds} worlds, surely in {len(sure)} ({named(sure)})"


def notes(experiment: Experiment) -> list[str]:
    """What a reader has to know before trusting the numbers."""
    found = completeness_notes(experiment)
    if experiment.simulated:
        found.append(
            "Simulation: tasks and agent are simulated with a known truth; no language model was "
            "asked. What holds here need not hold for yours."
        )
    found += [f"{said[0].upper()}{said[1:]}." for said in experiment.said]
    for reason in dict.fromkeys(experiment.exceptions.values()):
        tasks = [task for task, why in experiment.exceptions.items() if why == reason]
        found.append(
            f"Nobody can solve task {', '.join(tasks)} here, it counts as failed: {reason}."
        )
    pairs = {(run.key.world, run.key.seed) for run in experiment.runs}
    if len(pairs) * len(experiment.arms) > len(experiment.runs):
        found.append("Some arms lack worlds or seeds that others have: their means are not alike.")
    if experiment.cut:
        found.append(f"The last line breaks off in {len(experiment.cut)} files: a run goes on.")
    return found


def caveat(experiment: Experiment) -> str:
    """How sure the findings are; it stands beside them."""
    seeds = len({run.key.seed for run in experiment.runs})
    if seeds < FEW:
        return (
            f"How sure is this? Not at all yet: with {seeds} seed{'s' * (seeds != 1)} nothing can "
            f"be said about chance, so no interval and no verdict is given. From {FEW} seeds on "
            "both are."
        )
    return (
        f"How sure is this? An interval is a t interval over {seeds} seeds, after averaging over "
        "worlds. On simulated experiments it held the truth in 94 to 95 of 100 cases where it "
        "promises 95. It says how a number would move with other seeds in these worlds, not in "
        "other worlds. One in 20 misses by chance, and the best of many arms looks a little "
        "better than it is: a margin that matters should hold with more seeds."
    )


def _is_rival(arm: str) -> bool:
    return arm not in REFERENCES and not arm.startswith(MEMRL)
