"""What the package costs by itself: its import, and opening a bank, each in a fresh process."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

from langchain_memrl.bench.children import MEBIBYTE, resident_mib, run
from langchain_memrl.bench.data import Tasks
from langchain_memrl.bench.rows import Goal, Row
from langchain_memrl.bench.timing import summary
from langchain_memrl.memory import EpisodicMemory

IMPORT = """
import json, time
start = time.perf_counter()
{imports}
taken = 1000 * (time.perf_counter() - start)
from langchain_memrl.bench.children import resident_mib
print(json.dumps([taken, resident_mib()]))
"""
BASE = "import langchain_core.retrievers, langchain_core.language_models, langgraph.graph, faiss"
WHOLE = "from langchain_memrl import create_memrl_graph, EpisodicMemory, MemRLRetriever"
OPEN = """
import sys
from langchain_memrl.bench.footprint import open_and_tell
open_and_tell(sys.argv[1], int(sys.argv[2]))
"""
OPEN_GOAL = Goal(0, 100)
FIRST_RECALL_GOAL = Goal(0, 2000)


def imports(rounds: int) -> Iterator[Row]:
    """Time and memory of the import, beside those of its dependencies alone."""
    found: dict[str, list[list[float]]] = {BASE: [], WHOLE: []}
    for _ in range(rounds):
        for program in (BASE, WHOLE):
            found[program].append(run(IMPORT.format(imports=program)))
    (base_ms, base_mib), (ms, mib) = (
        zip(*found[program], strict=True) for program in (BASE, WHOLE)
    )
    beside = "its dependencies"
    yield Row("import", 0, 0, summary(ms), beside, summary(base_ms), Goal(1.5))
    yield Row("memory after the import", 0, 0, summary(mib), beside, summary(base_mib), unit="MiB")


def opening(folder: Path, tasks: Tasks, rounds: int) -> Iterator[Row]:
    """Opening a bank and its first recall: time, and how much more memory the process has then."""
    size, dimension = tasks.vectors.shape
    found = [run(OPEN, folder, dimension) for _ in range(rounds)]
    opened, first, after_open, after_recall = map(summary, zip(*found, strict=True))
    vectors = summary([tasks.vectors.nbytes / MEBIBYTE])
    yield Row("open", size, dimension, opened, goal=OPEN_GOAL)
    yield Row("open and first recall", size, dimension, first, goal=FIRST_RECALL_GOAL)
    yield Row("memory of the open bank", size, dimension, after_open, goal=OPEN_GOAL, unit="MiB")
    beside = ("the vectors", vectors)
    yield Row("memory after a recall", size, dimension, after_recall, *beside, unit="MiB")


def open_and_tell(folder: str, dimension: int) -> None:
    """In the child: open a bank, recall once, and print what each took."""
    tasks = Tasks(1, dimension)
    before, start = resident_mib(), time.perf_counter()
    with EpisodicMemory.open(folder, embeddings=tasks, read_only=True) as memory:
        opened, after_open = time.perf_counter(), resident_mib()
        memory.recall("a task that nobody has asked before")
        first, after_recall = time.perf_counter(), resident_mib()
    times = [1000 * (end - start) for end in (opened, first)]
    told = [*times, after_open - before, after_recall - before]
    print(json.dumps(told))  # noqa: T201 (this is how parent and child speak)
