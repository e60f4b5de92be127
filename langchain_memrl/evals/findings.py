"""What an experiment comes to, in sentences, whoever won."""

from collections.abc import Sequence

from langchain_memrl.evals.intervals import Comparison
from langchain_memrl.evals.reading import Experiment
from langchain_memrl.evals.runs import ORACLE
from langchain_memrl.evals.tables import MEMRL, NONE, RAG, Row, Tables

PLACEBO = "placebo"
REFERENCES = (NONE, "pass@k", PLACEBO, ORACLE)
"""Arms that stand for a limit; the others, MemRL's own variants aside, are its rivals."""

NAMED = 4  # worlds that a sentence names


def findings(tables: Tables) -> list[str]:
    """What the comparisons come to: against all rivals, RAG, the best other rival, the placebo."""
    found = [one for one in tables.comparisons[tables.headline] if one.left == MEMRL]
    told = [one for one in found if one.difference.count > 1]
    rivals = [one for one in told if _is_rival(one.right)]
    best = min(rivals, key=lambda one: one.difference.mean, default=None)
    sentences = [one.sentence for one in rivals if one.right == RAG or one is best]
    if any(one.right == PLACEBO and one.ahead != MEMRL for one in told):
        sentences.append(
            "memrl is not surely ahead of the placebo, whose rewards are shuffled: what it gains "
            "here need not be learned from rewards."
        )
    return [*against_rivals(rivals), *sentences, *below_no_memory(tables.worlds)]


def against_rivals(rivals: Sequence[Comparison]) -> list[str]:
    """MemRL against its rivals in one sentence: a tie is said as plainly as a win."""
    groups = (
        ("memrl is ahead of {}", [one.right for one in rivals if one.ahead == MEMRL]),
        ("no difference can be told from {}", [one.right for one in rivals if not one.ahead]),
        ("memrl is behind {}", [one.right for one in rivals if one.ahead == one.right]),
    )
    parts = [words.format(_and(names)) for words, names in groups if names]
    return [f"Against its rivals: {'; '.join(parts)}."] if parts else []


def below_no_memory(rows: Sequence[Row]) -> list[str]:
    """In how many worlds each arm loses against no memory, over all epochs, and which."""
    counts, where = [], []
    worlds = len({row.world for row in rows})
    for arm in dict.fromkeys(row.arm for row in rows if row.arm not in REFERENCES):
        own = [(row.world or "the only world", row.against_none) for row in rows if row.arm == arm]
        below = [(world, one) for world, one in own if one is not None and one.mean < 0]
        sure = [world for world, one in below if one.high < 0]
        if below:
            counts.append(f"{arm} {len(below)} ({len(sure)})")
        if sure and arm in (MEMRL, RAG):
            named = "; ".join(sure[:NAMED]) + ("; ..." if len(sure) > NAMED else "")
            where.append(f"With its whole interval, {arm} is below no memory in: {named}.")
    if not counts:
        return []
    first = (
        "Below no memory over all epochs, so many worlds "
        f"of {worlds} (in brackets, with the whole interval): {', '.join(counts)}."
    )
    return [first, *where]


def notes(experiment: Experiment) -> list[str]:
    """What a reader has to know before trusting the numbers."""
    found = []
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
    unanswered = sum(run.unanswered for run in experiment.runs)
    episodes = sum(run.episodes for run in experiment.runs)
    if unanswered:
        found.append(
            f"{unanswered:,} of {episodes:,} episodes have no answer because the environment "
            "failed; they are in no share."
        )
    epochs = max(len(run.success) for run in experiment.runs)
    short = sum(len(run.success) < epochs for run in experiment.runs)
    if short:
        found.append(f"{short} of {len(experiment.runs)} runs have fewer than {epochs} epochs.")
    pairs = {(run.key.world, run.key.seed) for run in experiment.runs}
    if len(pairs) * len(experiment.arms) > len(experiment.runs):
        found.append("Some arms lack worlds or seeds that others have: their means are not alike.")
    if experiment.cut:
        found.append(f"The last line breaks off in {len(experiment.cut)} files: a run goes on.")
    if len({run.key.seed for run in experiment.runs}) < 2:
        found.append("One seed only: nothing can be said about chance.")
    return found


def _is_rival(arm: str) -> bool:
    return arm not in REFERENCES and not arm.startswith(MEMRL)


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
