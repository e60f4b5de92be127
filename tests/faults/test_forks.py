"""A forked child never takes SQLite's state along, so that nobody's writes are lost."""

import gc
import os
import signal
import threading

import pytest
from fakes import FakeEmbeddings

from langchain_memrl import EpisodicMemory
from langchain_memrl.store.embedded.marker import FILE_NAME as MARKER


def open_bank(folder):
    return EpisodicMemory.open(folder, embeddings=FakeEmbeddings())


class Child:
    """A forked process that does one thing after another when it is told to."""

    def __init__(self, *steps):
        self._go, go = os.pipe()[::-1]
        done, self._done = os.pipe()[::-1], None
        self._done, told = done[1], done[0]
        self._pid = os.fork()
        if self._pid == 0:
            code = 1
            try:
                for step in steps:
                    os.read(go, 1)
                    step()
                    os.write(told, b"x")
                code = 0
            finally:
                os._exit(code)
        os.close(go)
        os.close(told)

    def step(self):
        """Let it do the next thing, and wait until that is done."""
        os.write(self._go, b"x")
        assert os.read(self._done, 1) == b"x"

    def end(self):
        os.close(self._go)
        code = os.waitpid(self._pid, 0)[1]
        os.close(self._done)
        return code


def intents(folder):
    with open_bank(folder) as memory:
        assert memory.verify().problems == ()
        return sorted(one.intent for one in memory.list(limit=None))


@pytest.mark.parametrize("first", ["parent", "child"])
def test_a_child_that_opens_the_bank_again_loses_nothing_whoever_closes_first(folder, first):
    parent = open_bank(folder)
    parent.remember("before", "lesson")
    opened = []
    child = Child(
        lambda: opened.append(open_bank(folder)),
        lambda: opened[0].remember("child", "lesson"),
        lambda: opened[0].close(),
    )
    child.step()
    if first == "parent":
        parent.close()
        child.step()
        child.step()
    else:
        child.step()
        parent.remember("parent", "lesson")
        child.step()
        parent.close()
    assert child.end() == 0
    assert intents(folder) == ["before", "child"] + ["parent"] * (first == "child")
    assert '"closed": true' in (folder / MARKER).read_text()


def test_a_child_that_drops_what_it_inherited_deletes_nothing(folder):
    parent = open_bank(folder)
    parent.remember("first", "lesson")
    held = [parent]

    def drop():
        held.clear()
        gc.collect()

    child = Child(drop)
    parent.close()
    with_writes = Child(
        lambda: held.__setitem__(0, open_bank(folder)),
        lambda: held[0].remember("second", "lesson"),
        lambda: os.kill(os.getpid(), signal.SIGKILL) or None,
    )
    with_writes.step()
    with_writes.step()
    del parent
    child.step()
    assert child.end() == 0
    os.write(with_writes._go, b"x")
    assert with_writes.end() == signal.SIGKILL
    assert intents(folder) == ["first", "second"]


def test_children_forked_while_a_thread_writes_write_too_or_are_told_why(folder):
    parent, stop = open_bank(folder), threading.Event()
    written = []

    def write():
        while not stop.is_set():
            written.append(parent.remember(f"parent {len(written)}", "lesson"))

    thread = threading.Thread(target=write)
    thread.start()
    children = []
    for number in range(10):

        def work(number=number):
            with open_bank(folder) as memory:
                memory.remember(f"child {number}", "lesson")

        children.append(Child(work))
        children[-1].step()
    stop.set()
    thread.join()
    assert [child.end() for child in children] == [0] * 10
    parent.close()
    assert len(intents(folder)) == len(written) + 10


def test_a_child_forked_in_the_middle_of_a_transaction_cannot_open_that_bank(folder, in_child):
    parent = open_bank(folder)
    with parent._store._sidecar.write():
        answer = in_child(lambda: open_bank(folder))
    assert "cannot be opened here" in answer
    assert '"spawn" or "forkserver"' in answer
    parent.remember("goes on", "lesson")
    parent.close()
    assert intents(folder) == ["goes on"]


def test_a_child_forked_in_the_middle_of_an_export_cannot_open_that_bank(
    folder, in_child, tmp_path
):
    parent, answers = open_bank(folder), []
    parent.remember_many([{"intent": "task", "lesson": "x"}] * 1100)

    def progress(done, total):
        answers.append(in_child(lambda: open_bank(folder)))

    parent.export_jsonl(tmp_path / "dump.jsonl", progress=progress)
    assert len(answers) >= 2
    assert all("cannot be opened here" in answer for answer in answers)
    assert in_child(lambda: len(open_bank(folder).list(limit=None))) == "returned 1100"


def test_the_parent_goes_on_after_any_number_of_forks(folder):
    parent = open_bank(folder)
    for number in range(5):
        assert Child().end() == 0
        parent.remember(f"task {number}", "lesson")
        assert len(parent.recall(f"task {number}", k=1, q_weight=0).ids) == 1
    parent.close()
    assert intents(folder) == [f"task {number}" for number in range(5)]


def test_a_bank_that_is_dropped_without_closing_leaks_no_file(folder):
    with open_bank(folder) as memory:
        memory.remember("task", "lesson")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        open_bank(folder).remember("task", "lesson")
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before + 2
