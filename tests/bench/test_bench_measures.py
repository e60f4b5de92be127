"""The bench measures every call, checks the answers, and tells what it cannot measure."""

import tempfile
import time

import pytest
from langchain_core.retrievers import BaseRetriever
from rich.console import Console

from langchain_memrl import EpisodicMemory
from langchain_memrl.bench import adapters, measures, recalls, rivals, shared
from langchain_memrl.bench.data import Filled, Tasks, fill
from langchain_memrl.bench.figure import draw
from langchain_memrl.bench.floors import reference_retrieval
from langchain_memrl.bench.plan import Step
from langchain_memrl.bench.report import as_json, as_table
from langchain_memrl.bench.rivals import Known, Rival, UnusableError, open_rivals
from langchain_memrl.bench.timing import summary

CALLS = {
    *("load, per memory", "recall", "recall in an episode", "recall in an episode, 99 %"),
    *("recall, same nearest 5", "reinforce 5 memories", "reinforce 160 memories", "remember"),
    *("remember, 99 %", "remember, slowest", "stats", "retriever.invoke", "retriever.ainvoke"),
    *("event loop held by ainvoke", "whole graph loop", "open", "open and first recall"),
    *("memory of the open bank", "memory after a recall"),
    *("peer: InMemoryVectorStore", "peer update: InMemoryVectorStore"),
    *("peer: LangGraph InMemoryStore", "peer update: LangGraph InMemoryStore"),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """A bank, measured for real, beside the two stores that are always there; no file stays."""
    with pytest.MonkeyPatch.context() as patch:
        always = ("InMemoryVectorStore", "LangGraph InMemoryStore")
        patch.setattr(rivals, "RIVALS", {name: rivals.RIVALS[name] for name in always})
        heard, place = [], tmp_path_factory.mktemp("bench")
        patch.setattr(tempfile, "tempdir", str(place))
        rows = measures.measure(Step(40, 8, 5, True), heard.append).rows
        assert list(place.iterdir()) == []
        yield rows, heard


@pytest.fixture
def filled(tmp_path):
    tasks = Tasks(60, 8)
    with EpisodicMemory.open(":memory:", embeddings=tasks) as memory:
        fill(memory, tasks)
        yield Filled(memory, tasks, tmp_path, 5)


def test_every_call_is_measured_and_every_answer_right(found):
    rows, _ = found
    assert {row.what for row in rows} == CALLS
    assert all(row.times.largest > 0 or row.unit == "MiB" for row in rows)
    assert [row.error for row in rows if row.error] == []


def test_what_is_measured_is_said_before_it_starts(found):
    _, heard = found
    assert heard[:3] == ["making the vectors", "filling the bank", "recall"]
    assert "other stores: InMemoryVectorStore, LangGraph InMemoryStore" in heard


def test_the_table_fits_and_json_has_everything(found):
    rows, _ = found
    console = Console(width=300)
    with console.capture() as said:
        console.print(as_table(rows))
    lines = said.get().splitlines()
    assert max(len(line.rstrip()) for line in lines) <= 100
    assert any(line.startswith("40 x 8, other stores") for line in lines)
    plain = as_json(rows)
    assert len(plain) == len(rows)
    assert {"median", "p99", "largest", "calls"} == set(plain[0]["measured"])


def test_the_figure_is_a_picture(found, tmp_path):
    draw(found[0], tmp_path / "cost.png")
    assert (tmp_path / "cost.png").read_bytes().startswith(b"\x89PNG")


def test_the_reference_finds_the_nearest_in_float64(filled):
    tasks = filled.tasks
    vectors = tasks.vectors.astype("float64")
    search = reference_retrieval(tasks, 5)
    for number in (0, 7, 59):
        cosines = vectors @ vectors[number]
        nearest = sorted(range(60), key=lambda n: -cosines[n])[:5]
        assert search(tasks.texts[number]) == [tasks.texts[n] for n in nearest]


def test_the_reference_is_left_out_of_large_banks_and_named(monkeypatch):
    monkeypatch.setattr(recalls, "REFERENCE_LIMIT", 10)
    monkeypatch.setattr(measures, "_calls", lambda bank, say: [])
    monkeypatch.setattr(measures, "opening", lambda *given: [])
    found = measures.measure(Step(20, 8, 5, False), lambda what: None)
    assert found.missing == {"the paper's code, 20 memories": "one retrieval takes many seconds"}


def test_an_answer_that_differs_from_the_reference_is_an_error(filled, monkeypatch):
    assert recalls.reference(filled).error == ""
    monkeypatch.setattr(recalls, "reference_retrieval", lambda tasks, k: lambda text: ["other"])
    assert recalls.reference(filled).error == "3 of 3 answers differ from the reference"


def test_a_lost_reward_is_an_error(monkeypatch):
    def lose_one(folder, ids, updates, processes):
        with EpisodicMemory.open(folder) as memory:
            for number in range(updates * processes - 1):
                memory.reinforce(f"episode {number}", reward=1.0, ids=ids)
        return [1.0]

    monkeypatch.setattr(shared, "_run", lose_one)
    assert "expected 8 rewards of each memory, got [7, 7, 7, 7, 7]" in shared.processes(2).error


class Blocking(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        raise AssertionError("only awaited here")

    async def _aget_relevant_documents(self, query, *, run_manager):
        end = time.perf_counter() + 0.02
        while time.perf_counter() < end:
            pass
        return []


async def test_a_retriever_that_blocks_the_event_loop_is_seen(monkeypatch):
    monkeypatch.setattr(adapters, "TICKED_CALLS", 3)
    late = await adapters._gaps(Blocking(), Tasks(5, 4))
    assert summary(late).largest > 15


def test_a_store_that_is_missing_too_slow_or_broken_is_told(tmp_path, monkeypatch):
    def absent(tasks, folder, stack):
        raise ModuleNotFoundError("No module named 'x'", name="x")

    def broken(tasks, folder, stack):
        raise ValueError("no disk")

    def fails_later(tasks, folder, stack):
        return Rival(lambda n: 1 / 0, lambda n: None, durable=True)

    def unable(tasks, folder, stack):
        raise UnusableError("this Python cannot")

    opened = {
        "absent": Known(absent),
        "broken": Known(broken),
        "late": Known(fails_later),
        "unable": Known(unable),
        "slow": Known(broken, 5, "a search there takes seconds"),
        "good": Known(lambda *given: Rival(lambda n: n, lambda n: n, durable=True)),
    }
    monkeypatch.setattr(rivals, "RIVALS", opened)
    with open_rivals(Tasks(6, 4), tmp_path) as (found, missing):
        assert list(found) == ["good"]
    assert missing == {
        "absent": "not installed (x)",
        "broken": "cannot be used here (ValueError: no disk)",
        "late": "cannot be used here (ZeroDivisionError: division by zero)",
        "unable": "this Python cannot",
        "slow, 6 memories": "a search there takes seconds",
    }
