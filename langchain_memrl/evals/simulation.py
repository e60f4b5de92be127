"""A simulated world: tasks with hidden skills, memories that truly help or not, and the truth.

Every task needs the right way of its skill, a short text that nobody is told. An episode writes
down a way: a success mostly the right one, a failure mostly a wrong one. A memory helps with a
task if it holds the right way of the task's skill; it is wrong if it stems from a task that looks
alike and holds another one; else it is irrelevant. With g, w and i of these in the prompt

    p = (base + (0.95 - base) * (1 - (1 - help)^g)) * (1 - harm)^w * (1 - distraction)^i

is the chance to solve the task. Whether it is solved is a pure function of the world, the seed,
the task, the epoch and the memories shown: the same number is drawn in every arm.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from langchain_memrl.evals.environment import Environment, Setup, Situation, Task, Trial
from langchain_memrl.types import ScoredMemory

CEILING = 0.95
DIMENSIONS = 64
SHARED = 0.6
"""Cosine between two tasks of one skill."""
SKILLS = 12
TASKS = 60
PHASES = 5
"""How often the right ways may change during a training."""


@dataclass(frozen=True, slots=True)
class World:
    """What a world is like.

    Attributes:
        similarity_tells: How far similarity tells skills apart that look alike: 1 fully, 0 not.
        look_alikes: How many other skills look like each one; 0, 1, 2, 3, 5 or 11.
        base: Chance of success without memory.
        help: Share of the gap to success that each right memory closes.
        harm: Share of the chance that each wrong memory takes away.
        distraction: The same for each irrelevant memory.
        useless_successes: Share of the successes whose memory holds a wrong way.
        useful_failures: Share of the failures whose memory holds the right way.
        drift: Chance that a skill's right way changes, at each fifth of the training.
        reward_noise: Share of the rewards that are told the wrong way round.
        raw_value: How much of a lesson's help a raw trajectory gives.
        notes: How many notes that read alike every bank starts with per skill; one is right.
        writes: Whether episodes write memories; without, only the notes are ranked.
        k: How many memories are shown.
    """

    similarity_tells: float = 0.5
    look_alikes: int = 2
    base: float = 0.3
    help: float = 0.5
    harm: float = 0.15
    distraction: float = 0.03
    useless_successes: float = 0.25
    useful_failures: float = 0.25
    drift: float = 0.0
    reward_noise: float = 0.0
    raw_value: float = 1.0
    notes: int = 0
    writes: bool = True
    k: int = 5


class Simulation(Environment):
    """The tasks of one world, drawn by one seed.

    Args:
        world: What it is like.
        setup: Its name, seed and number of tasks.
    """

    def __init__(self, world: World, setup: Setup) -> None:
        self.world = world
        self.recall = {"k": world.k}
        self._draw = f"{setup.world} {setup.seed}"
        count = TASKS if setup.tasks is None else setup.tasks
        self.tasks = [Task(f"t{place}", f"task {place}") for place in range(count)]
        self._skills = {task.text: place % SKILLS for place, task in enumerate(self.tasks)}
        self.notes = [*self._make_notes()]
        self._vectors = {text: self._vector(text) for text in self._skills}

    def act(self, situation: Situation) -> Trial:
        """Solve the task or not, and write down a way."""
        name = f"{situation.epoch}-{situation.task.id}"
        success = self.draw("success", name) < self.chance(situation)
        flipped = self.draw("reward", name) < self.world.reward_noise
        share = 1 - self.world.useless_successes if success else self.world.useful_failures
        right = self.draw("way", name) < share
        way = self.right_way(situation) if right else f"wrong way {name}"
        reward = 1.0 if success != flipped else -1.0
        if not self.world.writes:
            return Trial(success, reward)
        return Trial(success, reward, trajectory=way, lesson=way, metadata={"way": way})

    def embeddings(self) -> Embeddings:
        """Vectors that the world made."""
        return _Vectors(self._vectors)

    def oracle(self, situation: Situation) -> dict[str, str]:
        """Only memories that hold the right way."""
        return {"way": self.right_way(situation)}

    # --- the truth ------------------------------------------------------------------------------

    def chance(self, situation: Situation) -> float:
        """The chance to solve a task with the memories shown; see the formula above."""
        world, unhelped, kept = self.world, 1.0, 1.0
        right = self.right_way(situation)
        group = self._group(situation.task.text)
        for scored in situation.memories:
            memory = scored.memory
            if memory.experience.startswith(right):
                unhelped *= 1 - world.help * (world.raw_value if memory.raw else 1)
            else:
                alike = self._group(memory.intent) == group
                kept *= 1 - (world.harm if alike else world.distraction)
        return (world.base + (CEILING - world.base) * (1 - unhelped)) * kept

    def helps(self, situation: Situation, scored: ScoredMemory) -> bool:
        """Whether a memory holds the right way."""
        return scored.memory.experience.startswith(self.right_way(situation))

    def right_way(self, situation: Situation) -> str:
        """The right way of a task's skill at that time."""
        skill = self._skills[situation.task.text]
        phase = min(int(situation.progress * PHASES), PHASES - 1)
        changes = (
            self.draw("drift", f"{skill} {step}") < self.world.drift for step in range(1, phase + 1)
        )
        return f"right way {skill}.{sum(changes)};"

    def draw(self, what: str, name: str) -> float:
        """A number in [0, 1), the same in every arm."""
        return _uniform(f"{self._draw} {what} {name}")

    def _make_notes(self) -> Iterator[dict[str, str | dict[str, str]]]:
        """Notes of every skill, one of them right; which one is not told by its place."""
        for skill in range(SKILLS):
            holds = int(self.draw("note", str(skill)) * max(1, self.world.notes))
            for place in range(self.world.notes):
                text = f"note {skill}-{place}"
                self._skills[text] = skill
                way = f"right way {skill}.0;" if place == holds else f"wrong way of {text}"
                yield {"intent": text, "lesson": way, "trajectory": way, "metadata": {"way": way}}

    def _group(self, text: str) -> int:
        return self._skills[text] // (self.world.look_alikes + 1)

    def _vector(self, text: str) -> list[float]:
        """`sqrt(SHARED) * (skill and its group, mixed) + sqrt(1 - SHARED) * own direction`."""
        tells, draw = self.world.similarity_tells, self._draw
        skill = _direction(f"{draw} skill {self._skills[text]}")
        group = _direction(f"{draw} group {self._group(text)}")
        common = np.sqrt(tells) * skill + np.sqrt(1 - tells) * group
        vector = np.sqrt(SHARED) * common + np.sqrt(1 - SHARED) * _direction(f"{draw} {text}")
        unit: list[float] = (vector / np.linalg.norm(vector)).tolist()
        return unit


class _Vectors(Embeddings):
    """The vectors of a world's tasks; any other text gets a direction of its own."""

    def __init__(self, known: dict[str, list[float]]) -> None:
        self._known = known

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        return [self._known.get(text) or _direction(text).tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


def _uniform(text: str) -> float:
    return int.from_bytes(_digest(text)) / 2**64


@lru_cache(4096)
def _direction(text: str) -> NDArray[np.float64]:
    """A random direction that belongs to a text, shape (64,)."""
    rng = np.random.default_rng(int.from_bytes(_digest(text)))
    vector = rng.standard_normal(DIMENSIONS)
    return vector / np.linalg.norm(vector)
