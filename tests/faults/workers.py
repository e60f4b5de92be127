"""What the fault tests run in other processes. Every operation is announced and acknowledged."""

import itertools
import random

from children import SHARED
from fakes import FakeEmbeddings

from langchain_memrl import EpisodicMemory

OPERATIONS = {
    "add": 6,
    "reward": 6,
    "recall": 3,
    "delete": 3,
    "update": 2,
    "compact": 2,
    "export": 2,
    "reopen": 2,
}


def open_bank(folder):
    return EpisodicMemory.open(folder, embeddings=FakeEmbeddings())


class Worker:
    """Does one random operation after another on a bank, and tells each before and after."""

    def __init__(self, folder, pipe, name):
        self.folder, self.pipe, self.name = folder, pipe, name
        self.rng = random.Random(name)

    def run(self):
        self.memory = open_bank(self.folder)
        self.memory.recall(SHARED)
        self.ids = [found.id for found in self.memory.list(limit=None)]
        for number in itertools.count():
            (kind,) = self.rng.choices([*OPERATIONS], [*OPERATIONS.values()])
            if kind == "delete" and len(self.ids) < 5:
                kind = "add"
            getattr(self, kind)(f"{self.name} {number}")

    def announce(self, kind, **details):
        self.pipe.send((kind, details))

    def acknowledge(self, result=None):
        self.pipe.send(("done", result))

    def add(self, name):
        intent, lesson = f"task {self.rng.randrange(20)}", f"lesson of {name}"
        self.announce("add", intent=intent, lesson=lesson)
        self.ids.append(self.memory.remember(intent, lesson, episode_id=name).id)
        self.acknowledge(self.ids[-1])

    def reward(self, name):
        chosen = self.rng.sample(self.ids, min(3, len(self.ids)))
        self.announce("reward", ids=chosen)
        self.memory.reinforce(name, reward=1, ids=chosen)
        self.acknowledge()

    def recall(self, name):
        self.announce("recall", episode_id=name)
        found = self.memory.recall(SHARED, episode_id=name, k=2, score_threshold=None)
        self.acknowledge(found.ids)

    def delete(self, name):
        id = self.ids.pop(self.rng.randrange(len(self.ids)))
        self.announce("delete", id=id)
        self.memory.forget(ids=[id])
        self.acknowledge()

    def update(self, name):
        id, lesson = self.rng.choice(self.ids), f"update of {name}"
        self.announce("update", id=id, lesson=lesson)
        self.memory.update(id, lesson=lesson)
        self.acknowledge()

    def compact(self, name):
        self.announce("compact")
        self.memory.compact()
        self.acknowledge()

    def export(self, name):
        self.announce("export")
        self.memory.export_jsonl(self.folder.parent / "export.jsonl")
        self.acknowledge()

    def reopen(self, name):
        self.announce("reopen")
        self.memory.close()
        self.memory = open_bank(self.folder)
        self.acknowledge()


def work(folder, pipe, name):
    Worker(folder, pipe, name).run()
