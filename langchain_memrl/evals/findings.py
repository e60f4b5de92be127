"""What an experiment comes to, in sentences, whoever won."""

from collections.abc import Sequence

from langchain_memrl.evals.intervals import Comparison
from langchain_memrl.evals.reading import Experiment
from langchain_memrl.evals.runs import ORACLE
from langchain_memrl.evals.tables import MEMRL, NONE, Row, Tables

PLACEBO = "placebo"
REFERENCES = (NONE, "pass@k", PLACEBO, ORACLE)
"""Arms that stand for a limit; the others, MemRL's own variants aside, are its rivals."""

NAMED = 4  # worlds that a sentence names


def findings(tables: Tables) -> list[str]:
    """What the comparisons come to."""
    found = [one for one in tables.comparisons[tables.headline] if one.left == MEMRL]
    told = [one for one in found if one.difference.count > 1]
    sentences = [one.sentence for one in told if one.right not in REFERENCES]
    if any(one.right == PLACEBO and one.ahead != MEMRL for one in told):
        sentences.append(
            "memrl is not surely ahead of the placebo, whose rewards are shuffled: what it gains "
            "here need not be learned from rewards."
        )
    return [*against_rivals(told), *sentences, *below_no_memory(tables.worlds)]


def against_rivals(found: Sequence[Comparison]) -> list[str]:
    """MemRL against its rivals in one sentence: a tie is said as plainly as a win."""
    rivals = [one for one in found if _is_rival(one.right)]
    groups = (
        ("memrl is ahead of {}", [one.right for one in rivals if one.ahead == MEMRL]),
        ("no difference can be told from {}", [one.right for one in rivals if not one.ahead]),
        ("memrl is behind {}", [one.right for one in rivals if one.ahead == one.right]),
    )
    parts = [words.format(_and(names)) for words, names in groups if names]
    return [f"Against its rivals: {'; '.join(parts)}."] if parts else []


def below_no_memory(rows: Sequence[Row]) -> list[str]:
    """Which arms lose against no memory in which worlds, over all epochs."""
    sentences = []
    for arm in dict.fromkeys(row.arm for row in rows if row.arm not in REFERENCES):
        own = [(row.world, row.against_none) for row in rows if row.arm == arm]
        known = [(world, one) for world, one in own if one is not None and one.count]
        below = [world for world, one in known if one.mean < 0]
        sure = [world for world, one in known if one.high < 0]
        if below:
            named = "; ".join(sure[:NAMED]) + ("; ..." if len(sure) > NAMED else "")
            sentences.append(
                f"{arm} is below no memory in {len(below)} of {len(known)} worlds; the whole "
                f"interval is below in {len(sure)}" + (f" ({named})." if sure else ".")
            )
    return sentences


def notes(experiment: Experiment) -> list[str]:
    """What a reader has to know before trusting the numbers."""
    found = []
    if experiment.simulated:
        found.append(
            "Simulation: tasks and agent are simulated with a known truth; no language model was "
            "asked. What holds here need not hold for yours."
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
