"""What the fault tests run in other processes. Every operation is announced and acknowledged."""

import itertools
import random
import threading
import time
from collections import Counter, deque
from dataclasses import dataclass, field

from children import SHARED
from fakes import AwaitedMemory, FakeEmbeddings

from langchain_memrl import EpisodicMemory, summarize_pending
from langchain_memrl.errors import EpisodeError

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


def everything_sent(reader):
    """What is in a pipe whose other end is closed, or will be."""
    found = []
    try:
        while True:
            found.append(reader.recv())
    except EOFError:
        return found


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


@dataclass
class Report:
    """What became of a worker's calls."""

    seconds: float = 0.0
    waits: list = field(default_factory=list)
    errors: list = field(default_factory=list)


def reward_in_threads(folder, ids, name, threads, count, ready, reports):
    """Reward the same memories `count` times in each thread; puts one `Report`.

    Meets the others at `ready` twice: once the bank is open, and once it may begin.
    """
    report = Report()

    def run(thread):
        for number in range(count):
            before = time.monotonic()
            try:
                memory.reinforce(f"{name} {thread} {number}", reward=1, ids=ids)
            except Exception as error:
                report.errors.append(repr(error))
            report.waits.append(time.monotonic() - before)

    with open_bank(folder) as memory:
        workers = [threading.Thread(target=run, args=(thread,)) for thread in range(threads)]
        ready.wait()
        ready.wait()
        began = time.monotonic()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        report.seconds = time.monotonic() - began
    reports.put(report)


def add_many(folder, ids, count, pipe):
    with open_bank(folder) as memory:
        for number in range(count):
            pipe.send(memory.remember(f"new task {number}", "lesson").id)


def reward_many(folder, ids, count, pipe):
    with open_bank(folder) as memory:
        for number in range(count):
            memory.reinforce(f"episode {number}", reward=1, ids=ids)
            pipe.send(number)


def search_many(folder, ids, count, pipe):
    with open_bank(folder) as memory:
        for number in range(count):
            found = memory.recall(f"task {number % 10}", k=10, q_weight=0).ids
            assert found[0] == ids[number % 10]
            pipe.send(number)


def search_while_changing(folder, seconds, awaited, pipe):
    """Two search, one adds, one deletes; tells how many searches and changes, and what was wrong.

    A deleter only deletes what it has taken from `alive`, so that every id ever found existed.
    """
    bank = open_bank(folder)
    memory = AwaitedMemory(bank) if awaited else bank
    first = [memory.remember(f"task {n}", "lesson").id for n in range(50)]
    alive, ever, deleted = deque(first), set(first), set()
    counts, errors, end = Counter(), [], time.monotonic() + seconds

    def add(number):
        id = memory.remember(f"task {number % 97}", "lesson").id
        ever.add(id)
        alive.append(id)

    def delete(number):
        if len(alive) > 20:
            id = alive.popleft()
            memory.forget(ids=[id])
            deleted.add(id)

    def search(number):
        gone = set(deleted)
        hits = memory.recall(f"task {number % 97}", k=9, q_weight=0, score_threshold=None).memories
        near = [hit.similarity for hit in hits]
        ids = {hit.id for hit in hits}
        if not hits or len(ids) != len(hits) or near != sorted(near, reverse=True) or ids & gone:
            errors.append(f"search {number} gave {near}, {len(ids & gone)} of them deleted before")
        found.update(ids)

    def run(call):
        try:
            while time.monotonic() < end:
                call(counts[call])
                counts[call] += 1
        except Exception as error:
            errors.append(repr(error))

    found = set()
    threads = [threading.Thread(target=run, args=(call,)) for call in (add, delete, search, search)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if not found <= ever:
        errors.append("found what never existed")
    bank.close()
    pipe.send((counts[search], counts[add] + counts[delete], errors))


def write_in(folder, count, name, start, answers):
    """Write for the same episodes as the other process; tells the ids."""
    with open_bank(folder) as memory:
        start.wait()
        answers.put(
            [memory.remember(f"task {n}", "lesson", episode_id=f"e {n}").id for n in range(count)]
        )


def reward_in(folder, count, name, start, answers):
    """As "a" recall, a little late; as "b" reward the same episodes, again where refused."""
    refused = 0
    with open_bank(folder) as memory:
        memory.recall("task")
        start.wait()
        for number in range(count):
            if name == "a":
                time.sleep(0.002)
                memory.recall("task", episode_id=f"e {number}")
                continue
            while True:
                try:
                    memory.reinforce(f"e {number}", reward=1)
                    break
                except EpisodeError:
                    refused += 1
    answers.put("recalled" if name == "a" else f"rewarded, refused {refused} times before")


def forget_all(folder, namespace, ready):
    with open_bank(folder) as memory:
        ready.wait()
        memory.forget(all=True, namespace=namespace)


def summarise(folder, pipe):
    """Give raw memories lessons; tells each before it is stored."""

    def summarizer(attempt):
        pipe.send(attempt.intent)
        time.sleep(0.01)
        return f"lesson of {attempt.trajectory}"

    with open_bank(folder) as memory:
        summarize_pending(memory, summarizer)
