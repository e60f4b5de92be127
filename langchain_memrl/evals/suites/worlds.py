"""Simulated worlds with a known truth: where is which ranking ahead, and where behind?

The standard grid turns one thing at a time, once where similarity tells well which memory helps
(`clear`), and once where look-alikes mislead (`alike`). The stress worlds are extremes.
"""

from dataclasses import replace

from langchain_memrl.evals.environment import Setup, Suite
from langchain_memrl.evals.simulation import Simulation, World

CENTRES = {"clear": World(similarity_tells=0.9), "alike": World(similarity_tells=0.1)}

CHANGES: dict[str, dict[str, float]] = {
    "standard": {},
    "hard": {"base": 0.1},
    "easy": {"base": 0.6},
    "harmful": {"harm": 0.35},
    "distracting": {"distraction": 0.15},
    "clean": {"useless_successes": 0.0, "useful_failures": 0.5},
    "dirty": {"useless_successes": 0.6},
    "drift": {"drift": 0.3},
    "noise10": {"reward_noise": 0.1},
    "noise25": {"reward_noise": 0.25},
    "unique": {"look_alikes": 0},
    "crowded": {"look_alikes": 5},
    "notes": {"notes": 3},
}

SWEEP = {
    "tells-fully": World(similarity_tells=1.0),
    "tells-nothing": World(similarity_tells=0.0),
    "notes-only": World(look_alikes=0, notes=3, writes=False, k=1),
}

GRID: dict[str, World] = {
    f"{centre}-{name}": replace(world, **change)  # type: ignore[arg-type]
    for centre, world in CENTRES.items()
    for name, change in CHANGES.items()
} | SWEEP

STRESS: dict[str, World] = {
    "stress-one-topic": World(similarity_tells=0.0, look_alikes=11),
    "stress-poison": World(similarity_tells=0.1, harm=0.6, useless_successes=0.6),
    "stress-coin": World(reward_noise=0.5),
    "stress-churn": World(drift=1.0),
    "stress-hopeless": World(base=0.02, useful_failures=0.05),
    "stress-raw": World(raw_value=0.4),
    "stress-needless": World(base=0.9, distraction=0.15, harm=0.3),
}


WORDS: dict[str, str] = {
    "base": "solved without memory {:.0%}",
    "help": "a right memory closes {:.0%} of the gap",
    "harm": "a wrong memory takes {:.0%} of the chance",
    "distraction": "an irrelevant memory takes {:.0%} of the chance",
    "useless_successes": "successes that teach wrong {:.0%}",
    "useful_failures": "failures that teach right {:.0%}",
    "drift": "right ways change, chance {:.0%}",
    "reward_noise": "rewards flipped {:.0%}",
    "raw_value": "raw memories help {:.0%}",
    "look_alikes": "look-alikes per skill {}",
    "notes": "notes per skill {}",
    "writes": "nothing is written",
    "k": "memories shown {}",
}


def describe(world: World) -> str:
    """What a world is, in a few words: how far similarity tells, and what is not as usual."""
    usual = World()
    found = [
        words.format(getattr(world, name))
        for name, words in WORDS.items()
        if getattr(world, name) != getattr(usual, name)
    ]
    return ", ".join([f"similarity tells {world.similarity_tells:g}", *found])


def make_simulation(setup: Setup) -> Simulation:
    """The world of a name."""
    return Simulation((GRID | STRESS)[setup.world], setup)


SUITE = Suite(
    "worlds",
    make_simulation,
    worlds=tuple(GRID),
    stress=tuple(STRESS),
    epochs=5,
    batch=20,
    simulated=True,
    knows_truth=True,
    about={name: describe(world) for name, world in (GRID | STRESS).items()},
)
