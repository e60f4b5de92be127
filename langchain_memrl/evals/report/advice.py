"""What to do, in a sentence: which arm to use, or none at all."""

from collections.abc import Mapping, Sequence

from langchain_memrl.evals.analysis.intervals import FEW, Comparison, Pair, compare
from langchain_memrl.evals.analysis.measures import mean
from langchain_memrl.evals.analysis.runs import ORACLE
from langchain_memrl.evals.analysis.tables import MEMP, MEMRL, NONE, WHEN, Tables
from langchain_memrl.evals.arms import ARMS

PLACEBO = "placebo"
REFERENCES = (NONE, "pass@k", PLACEBO, ORACLE)
"""Arms that stand for a limit; the others, MemRL's own variants aside, are its rivals."""
OUTSIDE = tuple(name for name, arm in ARMS.items() if arm.ranking != "score")
"""Arms that rank by rules which the product does not have."""
HOW = {
    MEMRL: "the defaults",
    MEMP: "q_weight=0",
    "memrl-plain": "normalization='none', score_threshold=None",
    "rag": "raw trajectories, q_weight=0, score_threshold=None",
    "memrl-rag": "raw trajectories",
}
"""How a user sets an arm up today."""

Values = Mapping[str, Mapping[Pair, float]]


def advice(tables: Tables) -> list[str]:
    """First what to do; then, where Q is no better than something simpler, what that means."""
    values = tables.values
    if not values:
        return ["No advice yet: no run is finished, so no arm can be compared with another."]
    usable = [arm for arm in values if arm not in (*REFERENCES, *OUTSIDE)]
    if not usable:
        return []
    shared = set.intersection(*(set(values[arm]) for arm in values))
    means = {
        arm: mean([value for pair, value in own.items() if pair in shared or not shared])
        for arm, own in values.items()
    }
    best = max(usable, key=lambda arm: means[arm])
    seeds = len({seed for own in values.values() for _, seed in own})
    if seeds < FEW:
        when = WHEN[tables.headline][:1].lower() + WHEN[tables.headline][1:]
        if any(set(own) != shared for own in values.values()):
            when += ", over the worlds and seeds that all arms have,"
        return [_too_few(seeds, best, means, when)]
    worlds = len({world for own in values.values() for world, _ in own})
    where = f", on average over {worlds} worlds" if worlds > 1 else ""
    return [_choice(best, usable, values, where), *_without_q(values)]


def _too_few(seeds: int, best: str, means: Mapping[str, float], when: str) -> str:
    count = f"{seeds} seed is" if seeds == 1 else f"{seeds} seeds are"
    without = f", without memory {means[NONE]:.3f}" if NONE in means else ""
    return (
        f"No advice yet: {count} too few to tell arms apart; run at least {FEW} (--seeds {FEW}). "
        f"Highest so far of the arms that the product has: {best} ({when} {means[best]:.3f}"
        f"{without})."
    )


def _choice(best: str, usable: Sequence[str], values: Values, where: str) -> str:
    """Which arm to use."""
    others = [compare(best, arm, values) for arm in usable if arm != best]
    ties = [one.right for one in others if one.difference.count >= FEW and not one.ahead]
    gain = compare(best, NONE, values)
    if NONE not in values or gain.difference.count < FEW:
        return (
            f"Of the arms with memory use {_set_up(best)}{_or(ties)}. Whether memory helps at all "
            f"cannot be told: {NONE} did not run with the same seeds."
        )
    by = f"{abs(gain.difference.mean):.3f} (95 % interval {_ends(gain)}){where}"
    if gain.ahead == NONE:
        return (
            f"Use no memory here: even {best}, the best arm with memory, solves surely less than "
            f"no memory, by {by}."
        )
    if not gain.difference.known and gain.difference.mean:
        chosen = f"{_set_up(best)}{_or(ties)}" if gain.difference.mean > 0 else "no memory"
        return (
            f"Use {chosen}: {best} differs from no memory by {gain.difference.mean:+.3f} in each "
            f"of {gain.difference.count} seeds. They agree exactly, so chance cannot be judged."
        )
    if not gain.ahead:
        return (
            "No arm with memory can be told from no memory here, so there is no reason yet to use "
            f"one: the best, {best}, differs by {gain.difference.mean:+.3f} "
            f"(95 % interval {gain.difference.ends('+')}){where}."
        )
    return f"Use {_set_up(best)}{_or(ties)}. {best} is ahead of no memory by {by}."


def _ends(one: Comparison) -> str:
    low, high = sorted((abs(one.difference.low), abs(one.difference.high)))
    return f"{low:.3f} to {high:.3f}"


def _set_up(arm: str) -> str:
    return f"{arm} ({HOW[arm]})" if arm in HOW else arm


def _or(ties: Sequence[str]) -> str:
    if not ties:
        return ""
    words = f", or any arm that cannot be told from it: {join(ties)}"
    return f"{words}; of these {MEMP} ({HOW[MEMP]}) is the simplest" if MEMP in ties else words


def _without_q(values: Values) -> list[str]:
    """Where something simpler than Q is ahead of memrl, or cannot be told from it."""
    found = [compare(MEMRL, arm, values) for arm in values if arm == MEMP or arm in OUTSIDE]
    found = [one for one in found if one.difference.count >= FEW and one.ahead != MEMRL]
    told = []
    for one in found:
        if one.right == MEMP:
            result = (
                "surely hurts here: memp is ahead of memrl"
                if one.ahead
                else "cannot be shown to help here: memrl cannot be told from memp"
            )
            told.append(
                f"Q {result} ({one.difference.mean:+.3f}). What to do today: q_weight=0 turns "
                "memrl into memp."
            )
    ahead = [one.right for one in found if one.right != MEMP and one.ahead]
    ties = [one.right for one in found if one.right != MEMP and not one.ahead]
    if ahead or ties:
        parts = [f"{join(ahead)} {_is(ahead)} ahead of memrl"] * bool(ahead)
        parts += [f"{join(ties)} cannot be told from memrl"] * bool(ties)
        told.append(
            f"Simpler rules are not surely worse than Q: {'; '.join(parts)}. They are not in the "
            "product yet; today you can choose between Q (the defaults) and q_weight=0 (memp)."
        )
    return told


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def join(names: Sequence[str]) -> str:
    """Names as in a sentence."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
