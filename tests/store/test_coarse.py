"""The tier for large namespaces: similarities are exact, and it gets in nobody's way."""

import gc
import threading
from functools import partial

import numpy as np
import pytest
from builds import DIMENSION, LARGE, Builds

from langchain_memrl.store.embedded import coarse
from langchain_memrl.store.embedded.coarse import LargeIndex
from langchain_memrl.store.embedded.index import FaissIndex, NumpyIndex

ROWS = 4000


def units(count, seed=0, dimension=DIMENSION):
    rows = np.random.default_rng([seed, count]).normal(size=(count, dimension))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def builds(monkeypatch):
    found = Builds(monkeypatch)
    yield found
    found.finish()


class Pair:
    """A large index beside the reference, with the same rows."""

    def __init__(self, kind=LargeIndex, rows=ROWS, dimension=DIMENSION):
        self.large, self.reference, self.next = kind(dimension), NumpyIndex(dimension), 1
        self.add(units(rows, dimension=dimension))

    def add(self, rows):
        ids = np.arange(self.next, self.next + len(rows))
        self.next += len(rows)
        for index in (self.large, self.reference):
            index.add(ids, rows)
        return ids

    def remove(self, ids):
        for index in (self.large, self.reference):
            index.remove(ids)

    def found(self, queries, limit=10, allowed=None):
        """The share of the reference's ids that is found; every similarity has to be exact."""
        shares = []
        for query in queries:
            expected = self.reference.search(query, limit, allowed)
            got = self.large.search(query, limit, allowed)
            assert got.ids.size == expected.ids.size
            everything = self.reference.search(query, self.reference.ids.size)
            exact = dict(zip(everything.ids.tolist(), everything.similarity.tolist(), strict=True))
            assert [exact[id] for id in got.ids.tolist()] == got.similarity.tolist()
            assert got.similarity.tolist() == sorted(got.similarity, reverse=True)
            shares.append(np.isin(expected.ids, got.ids).mean())
        return float(np.mean(shares))


@pytest.fixture
def pair(builds):
    """Rows whose codes are ready."""
    made = Pair()
    made.large.search(units(1)[0], 1)
    assert builds.finish() == 1
    assert made.large.codes().rows > 0.9 * ROWS
    return made


def test_similarities_are_the_references_and_nearly_all_of_the_nearest_are_found(pair):
    assert pair.found(units(50, seed=1)) > 0.98


def test_equal_similarities_go_to_the_newer_id(pair):
    pair.add(pair.reference.vectors[:5])
    for row in range(5):
        hits = pair.large.search(pair.reference.vectors[row], 2)
        assert hits.ids.tolist() == [ROWS + 1 + row, row + 1]


def test_rows_that_came_after_the_codes_are_found_at_once(pair):
    rows = units(300, seed=2)
    ids = pair.add(rows)
    assert [pair.large.search(row, 1).ids.tolist() for row in rows] == ids[:, None].tolist()


def test_removed_rows_are_never_found_even_where_all_that_seemed_near_are_gone(pair):
    query = units(1, seed=3)[0]
    pair.add(units(100, seed=4))
    for _ in range(3):
        nearest = pair.reference.search(query, 500).ids
        pair.remove(nearest)
        hits = pair.large.search(query, 10)
        assert not np.isin(hits.ids, nearest).any()
        assert pair.found([query, *units(10, seed=5)]) > 0.9
    assert pair.large.codes() is not None


def test_an_index_emptied_by_removal_can_be_filled_again(pair, builds):
    pair.remove(pair.reference.ids)
    assert pair.large.search(units(1)[0], 10).ids.size == 0
    pair.add(units(ROWS, seed=6))
    assert pair.found(units(5, seed=7)) == 1
    builds.finish()
    assert pair.found(units(50, seed=7)) > 0.98
    assert pair.large.codes() is not None


def test_a_filter_or_many_wanted_hits_are_answered_exactly(pair):
    queries = units(20, seed=8)
    for allowed in (np.arange(1, ROWS, 2), np.arange(5, 900), np.array([], dtype=np.int64)):
        for query in queries:
            assert pair.large.search(query, 10, allowed).ids.tolist() == (
                pair.reference.search(query, 10, allowed).ids.tolist()
            )
    assert pair.found(queries, limit=1000) == 1


def test_codes_are_made_anew_once_a_tenth_came_after_them(pair, builds):
    queries = units(20, seed=9)
    covered = pair.large.codes().rows
    pair.add(units(ROWS // 20, seed=9))
    assert pair.found(queries) > 0.98
    assert builds.finish() == 1
    builds.hold()
    pair.add(units(ROWS // 10, seed=10))
    assert pair.found(queries) > 0.98
    assert pair.large.codes().rows == covered  # the old ones serve meanwhile
    assert builds.finish() == 2
    assert pair.found(queries) > 0.98
    assert pair.large.codes().rows > 1.1 * covered
    assert builds.finish() == 2


def test_answers_are_exact_until_the_codes_are_ready(builds):
    builds.hold()
    pair = Pair()
    assert pair.found(units(5, seed=1)) == 1
    assert pair.large.codes() is None
    assert builds.finish() == 1
    assert pair.large.codes() is not None


@pytest.mark.parametrize(
    "make",
    [partial(Pair, rows=LARGE - 1), partial(Pair, FaissIndex), partial(Pair, dimension=15)],
    ids=["below the size", "exact", "an odd dimension"],
)
def test_no_codes_are_made(builds, make):
    pair = make()
    assert pair.found(units(5, seed=1)[:, : pair.large.dimension]) == 1
    assert builds.finish() == 0


def test_what_goes_wrong_in_the_thread_is_told_once_and_answers_stay_exact(
    builds, monkeypatch, caplog
):
    def fail(*_):
        raise MemoryError("no room")

    monkeypatch.setattr(coarse.faiss, "IndexPQFastScan", fail)
    pair = Pair()
    for _ in range(3):
        assert pair.found(units(5, seed=1)) == 1
        assert builds.finish() == 1
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "no room" in caplog.text


def test_where_no_thread_can_be_started_answers_stay_exact(builds, monkeypatch, caplog):
    def fail(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    pair = Pair()
    assert pair.found(units(5, seed=1)) == 1
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_a_thread_ends_where_nobody_waits_for_its_codes(builds, monkeypatch):
    builds.hold()
    added = []
    monkeypatch.setattr(coarse.faiss.IndexPQFastScan, "add", lambda *_: added.append(1))
    pair = Pair()
    pair.found(units(1))
    del pair
    gc.collect()
    assert builds.finish() == 1
    assert added == []


def test_codes_of_rows_that_were_dropped_meanwhile_are_never_used(builds):
    builds.hold()
    pair = Pair()
    pair.found(units(1))
    pair.remove(np.arange(1, ROWS // 2 + 2))  # more than half: the index is laid out anew
    assert builds.finish() == 1
    assert pair.large.codes() is None
    assert pair.found(units(20, seed=1)) == 1


def test_rows_may_come_and_go_while_codes_are_made_of_them(builds):
    """Nothing waits for the thread; FAISS's buffers may move at any time but for full pieces."""
    pair = Pair()
    query = units(1, seed=1)[0]
    for seed in range(100):
        ids = pair.add(units(61, seed=100 + seed))
        pair.remove(ids[::7])
        pair.large.search(query, 10)
    assert builds.finish() >= 2
    assert pair.found(units(50, seed=2)) > 0.95
    assert pair.large.codes().rows > 0.75 * len(pair.reference.ids)
