"""Small suites for the tests of the loop, importable by other processes."""

import json
import random
from pathlib import Path

from langchain_memrl.evals.arms import ARMS
from langchain_memrl.evals.environment import Environment, Suite, Task, Trial
from langchain_memrl.evals.loop import run
from langchain_memrl.evals.settings import RunSettings
from langchain_memrl.evals.suites import load_suite
from langchain_memrl.offline import HashingEmbeddings

COLOURS = ["red", "green", "blue", "grey", "pink", "teal", "gold", "lime"]


class Colours(Environment):
    """A task is solved once a memory of its own is shown; every ask is written to a file."""

    asked: Path | None = None

    def __init__(self, setup):
        self.tasks = [Task(name, f"paint it {name}") for name in COLOURS[: setup.tasks or 8]]
        self._seed = setup.seed

    def act(self, situation):
        name = f"{situation.epoch}-{situation.task.id}"
        if self.asked is not None:
            with self.asked.open("a") as file:
                file.write(f"{name}\n")
        own = [m for m in situation.memories if m.memory.intent == situation.task.text]
        lucky = random.Random(f"{self._seed} {name}").random() < 0.3
        return Trial(
            success=bool(own) or lucky,
            answer=f"answer {name}",
            trajectory=f"did {name}",
            lesson=f"do {name}",
            prompt_tokens=7,
        )

    def embeddings(self):
        return HashingEmbeddings(64)


SLOW = Suite("colours", Colours, epochs=3, batch=3)


def settings(arms="none,memrl,shrunk", **options):
    options = {"seeds": 1, "epochs": 2, "batch": 3, "attempts": 1} | options
    return RunSettings(tuple(ARMS[name] for name in arms.split(",")), **options)


def lines(out):
    """All records of a folder, without times."""
    found = []
    for path in sorted(Path(out).glob("*.jsonl")):
        for line in path.read_text().splitlines():
            fields = json.loads(line)
            fields.pop("seconds", None)
            found.append(fields)
    return found


WORLDS = {"arms": "none,memrl,shrunk,placebo", "epochs": 2, "batch": 5, "tasks": 10}


def start(kind, out, **options):
    """Begin, or go on with, one of two runs."""
    if kind == "worlds":
        return run(
            load_suite("worlds"), settings(worlds=("alike-notes",), **WORLDS), out, **options
        )
    return run(SLOW, settings(), out, **options)


def run_told(kind, out, pipe):
    """Run in a process of its own and tell how far it is."""
    Colours.asked = Path(out) / "asked.txt"
    start(kind, Path(out), progress=lambda done, total, unit: pipe.send(done))
    pipe.send("finished")
