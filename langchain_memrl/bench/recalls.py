"""Recall beside a bare scan, beside its own write, and beside the retrieval of the paper's code."""

import itertools
import threading
from collections.abc import Iterator

from langchain_memrl.bench.data import Filled
from langchain_memrl.bench.floors import numpy_product, one_thread, reference_retrieval
from langchain_memrl.bench.rows import Goal, Row
from langchain_memrl.bench.timing import in_turns, sum_of, summary
from langchain_memrl.store.embedded.bare import BareSqlite, flat_faiss
from langchain_memrl.store.embedded.coarse import THREAD_NAME

K, FETCH_K = 5, 10
WHOLE_POOL = 1_000  # every memory of the nearest intents
REFERENCE_LIMIT = 10_000
REFERENCE_ROUNDS = 3
REFERENCE_GOALS = {(10_000, 384): Goal(1 / 250), (10_000, 1536): Goal(1 / 500)}
EPISODES = 100
"""How many recalls a 99th percentile needs at least."""


def scan(bank: Filled) -> Row:
    """A recall beside the faster of raw FAISS and a NumPy product over the same rows."""
    tasks, memory = bank.tasks, bank.memory
    faiss, numpy = flat_faiss(tasks.vectors, FETCH_K), numpy_product(tasks.vectors, FETCH_K)
    calls = {
        "ours": lambda n: memory.recall(tasks.text(n), k=K),
        "IndexFlatIP.search": lambda n: faiss(tasks.place(n)),
        "NumPy product": lambda n: numpy(tasks.place(n)),
    }
    with one_thread():
        times = in_turns(calls, bank.rounds)
    ours = times.pop("ours")
    floor = min(times, key=lambda name: times[name].median)
    return bank.row("recall", ours, floor, times[floor], Goal(1.25, 0.2))


def by_codes(bank: Filled) -> Iterator[Row]:
    """A recall of a large bank by its codes, and what share of the nearest it finds."""
    tasks, memory = bank.tasks, bank.memory
    memory.recall(tasks.text(0))  # begins to make the codes
    for thread in threading.enumerate():
        if thread.name == THREAD_NAME:
            thread.join()
    faiss = flat_faiss(tasks.vectors, FETCH_K)
    times = in_turns(
        {
            "ours": lambda n: memory.recall(tasks.text(n), k=K),
            "theirs": lambda n: faiss(tasks.place(n)),
        },
        bank.rounds,
    )
    yield bank.row("recall by codes", times["ours"], "IndexFlatIP.search", times["theirs"])
    found = 0
    for number in range(bank.rounds):
        truth = {tasks.texts[place] for place in faiss(tasks.place(number))[1][0][:K]}
        pool = memory.recall(tasks.text(number), k=WHOLE_POOL, fetch_k=K, score_threshold=None)
        found += len(truth & {scored.memory.intent for scored in pool.memories})
    share = summary([100 * found / (K * bank.rounds)])
    yield bank.row("of the nearest 5, by codes", share, unit="%")


def in_episodes(bank: Filled) -> Iterator[Row]:
    """A recall that its episode records, on disk, before it returns."""
    tasks, memory, number = bank.tasks, bank.memory, itertools.count()
    bare = BareSqlite(bank.folder)
    times = in_turns(
        {
            "ours": lambda n: memory.recall(tasks.text(n), k=K, episode_id=f"r{next(number)}"),
            "recall": lambda n: memory.recall(tasks.text(n), k=K),
            "bare": bare.record,
        },
        max(bank.rounds, min(EPISODES, 4 * bank.rounds)),
    )
    bare.close()
    both = sum_of(times["recall"], times["bare"])
    beside = ("recall+bare SQLite", both)
    yield bank.row("recall in an episode", times["ours"], *beside)
    yield bank.row("recall in an episode, 99 %", times["ours"], *beside, of="p99")


def reference(bank: Filled) -> Row:
    """A recall beside the paper's code; both have to find the same memories."""
    tasks, memory = bank.tasks, bank.memory
    search = reference_retrieval(tasks, K)
    found: dict[int, list[str]] = {}

    def theirs(number: int) -> None:
        found[number] = search(tasks.text(number))

    times = in_turns(
        {"ours": lambda n: memory.recall(tasks.text(n), k=K), "theirs": theirs},
        REFERENCE_ROUNDS,
        warm_up=0,
    )
    ours = {number: _nearest(bank, tasks.text(number)) for number in found}
    wrong = sum(ours[number] != found[number] for number in found)
    goal = REFERENCE_GOALS.get((len(tasks.texts), tasks.vectors.shape[1]))
    error = f"{wrong} of {len(found)} answers differ from the reference" if wrong else ""
    beside = ("the paper's code", times["theirs"], goal)
    return bank.row("recall, same nearest 5", times["ours"], *beside, error=error)


def _nearest(bank: Filled, text: str) -> list[str]:
    """The intents of a recall that looks at nothing but similarity, closest first."""
    recall = bank.memory.recall(text, k=K, q_weight=0.0, score_threshold=None)
    return [scored.memory.intent for scored in recall.memories]
