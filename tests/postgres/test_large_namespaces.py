"""Large namespaces: the few rows of one tenant among many of others, and graphs."""

import logging
import threading
import time

import numpy as np
import psycopg
import pytest
from bulk import clustered, copy_in, fill_up
from fakes import FakeEmbeddings

from langchain_memrl.core.scoring import cosines
from langchain_memrl.store.postgres import graphs

DIMENSION = 32
TASK = "the task that is asked for"


def task_vector(dimension=DIMENSION):
    return clustered(1, dimension, seed=9)[0]


class Fixed(FakeEmbeddings):
    """A task whose vector is known."""

    def __init__(self, dimension=DIMENSION):
        super().__init__(dimension, vectors={TASK: task_vector(dimension)})


@pytest.fixture
def embeddings():
    return Fixed()


def settled(memory):
    """Wait until graphs that are being built are done."""
    thread = memory._store._graphs._building
    if thread is not None:
        thread.join()


def indexes(database):
    """The graphs of the bank, and whether they are usable."""
    return dict(
        database.execute(
            "SELECT c.relname, x.indisvalid FROM pg_index x "
            "JOIN pg_class c ON c.oid = x.indexrelid JOIN pg_am a ON a.oid = c.relam "
            "WHERE a.amname = 'hnsw' AND c.relnamespace = current_schema()::regnamespace"
        ).fetchall()
    )


def recalled(memory, task=TASK, k=10, **options):
    options = {"q_weight": 0, "score_threshold": None, "k": k, "fetch_k": k, **options}
    found = memory.recall(task, **options)
    return [(hit.id, hit.similarity) for hit in found.memories]


def nearest(vectors, query, start, limit=10, chosen=slice(None)):
    """Ids and cosines by brute force over rows that were copied in from number `start` on."""
    places = np.arange(len(vectors))[chosen]
    similarity = cosines(vectors[places], query)
    best = np.lexsort((-places, -similarity))[:limit]
    return [(f"m-{start + places[n]}", similarity[n]) for n in best]


# --- few among many -----------------------------------------------------------------------------


def test_ten_rows_among_very_many_of_others_are_all_found(open_bank, database_of, much):
    """The long form has half a million rows of others."""
    bank, database = open_bank(), database_of()
    bank.remember("first", "lesson", namespace="none")  # the bank has its model now
    fill_up(database, "others", much(100_000, 500_000), DIMENSION)
    start = much(100_000, 500_000) + 1001
    few = clustered(10, DIMENSION, seed=1)
    copy_in(database, "few", few, kinds=("a", "b"))
    for _ in range(8):  # often enough for a plan that does not look at the values
        found = recalled(bank, namespace="few")
        assert found == nearest(few, task_vector(), start)
        assert len(found) == 10
    chosen = (np.arange(10) + start) % 2 == 0
    only = recalled(bank, namespace="few", filter={"kind": "a"})
    assert only == nearest(few, task_vector(), start, chosen=chosen)
    assert len(only) == 5
    begin = time.perf_counter()
    recalled(bank, namespace="few")
    assert time.perf_counter() - begin < 0.25


def test_ten_rows_beside_a_large_namespace_with_a_graph_are_all_found(
    open_bank, database_of, small, much
):
    """In the long form the other namespace has half a million rows."""
    bank, database, size = open_bank(), database_of(), much(3000, 500_000)
    bank.remember("first", "lesson", namespace="none")
    others, few = clustered(size, DIMENSION), clustered(10, DIMENSION, seed=1)
    copy_in(database, "others", others)
    copy_in(database, "few", few, kinds=("a", "b"))
    true = nearest(others, task_vector(), 2)
    assert recalled(bank, namespace="others") == true  # and asks for a graph
    settled(bank)
    assert len(set(recalled(bank, namespace="others")) & set(true)) >= 9
    start = size + 2
    chosen = (np.arange(10) + start) % 2 == 0
    for memory in (bank, open_bank(), open_bank(exact=True)):
        assert recalled(memory, namespace="few") == nearest(few, task_vector(), start)
        only = recalled(memory, namespace="few", filter={"kind": "a"})
        assert only == nearest(few, task_vector(), start, chosen=chosen)
    assert list(indexes(database).values()) == [True]


# --- graphs -------------------------------------------------------------------------------------


@pytest.fixture
def database_of(server, folder):
    """Connects to the bank's schema, once the bank is made."""
    opened = []

    def connect(location=folder):
        opened.append(server.connect())
        opened[-1].execute(f"SET search_path TO {location.rpartition('=')[2]}, public")
        return opened[-1]

    yield connect
    for one in opened:
        one.close()


@pytest.fixture
def small(monkeypatch):
    """Namespaces of 1,000 intents are large."""
    monkeypatch.setattr(graphs, "LARGE_NUMBERS", 1000 * DIMENSION)


@pytest.fixture
def filled(open_bank, database_of, small):
    """A bank with a namespace of 3,000 intents, a look behind it, and the vectors."""
    bank, database = open_bank(), database_of()
    bank.remember("first", "lesson", namespace="none")
    vectors = clustered(3000, DIMENSION)
    copy_in(database, "default", vectors, kinds=("rare", *["usual"] * 99))
    return bank, database, vectors


def test_a_large_namespace_gets_a_graph_and_the_first_recall_does_not_wait_for_it(filled):
    bank, database, vectors = filled
    assert recalled(bank) == nearest(vectors, task_vector(), 2)  # exact: there is none yet
    settled(bank)
    assert list(indexes(database).values()) == [True]
    bank.remember(TASK, "lesson")
    assert recalled(bank, k=1)[0][1] == 1.0  # what is written later is in it


def test_a_graph_finds_at_least_95_of_100_of_the_ten_nearest(filled, record_property):
    bank, _, vectors = filled
    recalled(bank)
    settled(bank)
    queries = clustered(100, DIMENSION, seed=3)
    found = 0
    for number, query in enumerate(queries):
        bank.embedder._embeddings.vectors[f"q{number}"] = query
        (asked,) = bank.embedder.embed([f"q{number}"])
        every = nearest(vectors, asked, 2, len(vectors))
        got = recalled(bank, f"q{number}")
        assert got == [hit for hit in every if hit in got]  # in order, with their own cosines
        true = every[:10]
        found += len(set(got) & set(true))
    record_property("recall@10", found / 1000)
    assert found / 1000 >= 0.95


def uses_graph(database, namespace="default"):
    """Whether the planner takes the graph for the statement that a recall runs."""
    vector = "[" + ",".join(["0.1"] * DIMENSION) + "]"
    literal = psycopg.sql.Literal(namespace).as_string(database)
    rows = database.execute(
        f"EXPLAIN SELECT v.id FROM intent_vectors v WHERE v.namespace = {literal} "
        f"ORDER BY (v.embedding::vector({DIMENSION})) <#> '{vector}'::vector({DIMENSION}) LIMIT 40"
    ).fetchall()
    return any("near_" in row[0] for row in rows)


def test_the_graph_is_used_whatever_the_namespace_is_called(open_bank, database_of, small):
    bank, name = open_bank(), 'o\'Brien \\ "ä" %s'
    bank.remember("first", "lesson", namespace="none")
    database = database_of()
    vectors = clustered(3000, DIMENSION)
    copy_in(database, name, vectors)
    recalled(bank, namespace=name)
    settled(bank)
    assert uses_graph(database, name)
    assert len(recalled(bank, namespace=name)) == 10


@pytest.mark.parametrize("share", ["rare", "usual"])
def test_a_filter_on_a_namespace_with_a_graph_finds_as_many_as_there_are(filled, share):
    bank, _, vectors = filled
    recalled(bank)
    settled(bank)
    numbers = np.arange(len(vectors)) + 2
    chosen = (numbers % 100 == 0) == (share == "rare")
    true = nearest(vectors, task_vector(), 2, chosen=chosen)
    found = recalled(bank, filter={"kind": share})
    assert len(found) == 10
    assert len(set(found) & set(true)) >= 9
    every = recalled(bank, filter={"kind": "rare"}, k=100)
    assert every == nearest(vectors, task_vector(), 2, 100, chosen=numbers % 100 == 0)


def test_forgotten_and_disabled_memories_are_not_found_through_the_graph(filled):
    bank = filled[0]
    recalled(bank)
    settled(bank)
    first = [id for id, _ in recalled(bank, k=20)]
    bank.forget(ids=first[:10])
    bank.disable(first[10])
    assert not set(first[:11]) & {id for id, _ in recalled(bank, k=20)}
    assert bank.verify().problems == ()


def test_exact_searches_make_and_use_no_graph(filled, open_bank):
    _, database, vectors = filled
    memory = open_bank(exact=True)
    assert recalled(memory) == nearest(vectors, task_vector(), 2)
    settled(memory)
    assert indexes(database) == {}


def test_a_reader_makes_no_graph(filled, open_bank):
    _, database, vectors = filled
    memory = open_bank(read_only=True)
    assert recalled(memory) == nearest(vectors, task_vector(), 2)
    settled(memory)
    assert indexes(database) == {}


def test_a_graph_that_a_broken_build_left_is_built_again_and_answers_stay_exact(filled, open_bank):
    bank, database, vectors = filled
    recalled(bank)
    settled(bank)
    (name,) = indexes(database)
    database.execute(
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", (name,)
    )
    fresh = open_bank()
    assert recalled(fresh) == nearest(vectors, task_vector(), 2)
    settled(fresh)
    assert indexes(database) == {name: True}
    assert uses_graph(database)


def test_closing_ends_a_build_and_the_next_bank_makes_it_anew(
    filled, open_bank, caplog, monkeypatch
):
    bank, database, vectors = filled
    caplog.set_level(logging.WARNING)
    with database.transaction():  # a build waits for every older transaction
        database.execute("LOCK TABLE intent_vectors IN ROW EXCLUSIVE MODE")
        recalled(bank)
        wait_for(lambda: bank._store._graphs._connection is not None)
        time.sleep(0.3)
        begin = time.perf_counter()
        bank.close()
        assert time.perf_counter() - begin < 4
        assert not bank._store._graphs._building.is_alive()
    assert caplog.records == []
    assert True not in indexes(database).values()
    fresh = open_bank()
    assert recalled(fresh) == nearest(vectors, task_vector(), 2)
    settled(fresh)
    assert list(indexes(database).values()) == [True]


def test_a_failed_build_is_a_warning_and_answers_stay_exact(filled, caplog, monkeypatch):
    bank, _, vectors = filled
    monkeypatch.setattr(graphs, "kind_of", lambda dimension: "vector(7)")
    assert recalled(bank) == nearest(vectors, task_vector(), 2)
    settled(bank)
    assert "a vector graph was not built" in caplog.text
    assert "searches stay exact" in caplog.text
    for _ in range(3):  # and it is not tried again at every recall
        assert recalled(bank) == nearest(vectors, task_vector(), 2)
        settled(bank)
    assert len(caplog.records) == 1


def test_two_that_build_at_once_make_one_graph(filled, open_bank):
    bank, database, _ = filled
    other, start, errors = open_bank(), threading.Barrier(2), []

    def build(memory):
        start.wait()
        try:
            memory._store._graphs.build("default", DIMENSION)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=build, args=(one,)) for one in (bank, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert list(indexes(database).values()) == [True]


def wait_for(condition):
    for _ in range(500):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never happened")


# --- dimensions, and other models ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("dimension", "kind"), [(2000, "vector"), (2001, "halfvec"), (4000, "halfvec"), (4001, None)]
)
def test_graphs_are_of_float32_then_of_float16_then_there_are_none(
    open_bank, database_of, monkeypatch, dimension, kind
):
    monkeypatch.setattr(graphs, "LARGE_NUMBERS", 60 * dimension)
    bank = open_bank(embeddings=Fixed(dimension))
    bank.remember("first", "lesson", namespace="none")
    database = database_of()
    vectors = clustered(120, dimension)
    copy_in(database, "default", vectors)
    recalled(bank)
    settled(bank)
    assert len(indexes(database)) == (kind is not None)
    if kind is not None:
        (definition,) = database.execute(
            "SELECT indexdef FROM pg_indexes WHERE indexname LIKE 'near_%%' "
            "AND schemaname = current_schema()"
        ).fetchone()
        assert f"{kind}_ip_ops" in definition
    assert recalled(bank) == nearest(vectors, task_vector(dimension), 2)


def test_another_model_with_another_dimension_gets_graphs_of_its_own(filled, open_bank):
    bank, database, _ = filled
    recalled(bank)
    settled(bank)
    (old,) = indexes(database)
    new = FakeEmbeddings(40, model="new")
    assert bank.reembed(new) > 3000 - 1
    assert old not in indexes(database)
    other = open_bank(embeddings=new)
    task = "default task 7"
    assert recalled(other, task)[0][1] == 1.0
    settled(other)
    (name,) = indexes(database)
    assert name.endswith("_40")
    assert recalled(other, task)[0][1] == 1.0
    assert other.verify().problems == ()


def test_the_index_is_made_anew_from_the_rows(filled):
    bank, database, vectors = filled
    database.execute("DELETE FROM intent_vectors WHERE id % 3 = 0")
    database.execute("UPDATE intent_vectors SET namespace = 'elsewhere' WHERE id % 5 = 0")
    assert any("call rebuild_index()" in problem for problem in bank.verify().problems)
    bank.rebuild_index()
    assert bank.verify().problems == ()
    assert list(indexes(database).values()) == [True]
    found = recalled(bank)
    assert len(set(found) & set(nearest(vectors, task_vector(), 2))) >= 9
