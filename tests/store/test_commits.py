"""Calls of several threads share a commit, and none of them notices."""

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from langchain_memrl.errors import InputError, StoreBusyError, StoreError
from langchain_memrl.store.embedded.commits import Commits

SECONDS = 20


class Bench:
    """A database whose first transaction waits until the others queue behind it."""

    def __init__(self):
        self.db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self.db.execute("CREATE TABLE t (n UNIQUE)")
        self.commits = Commits(self.transaction)
        self.sizes = []
        self.refusals = []
        self.queued = threading.Event()
        self.started = threading.Event()

    @contextmanager
    def transaction(self):
        self.started.set()
        if not self.sizes:
            assert self.queued.wait(SECONDS)
        self.db.execute("BEGIN")
        before = self.count()
        try:
            yield self.db
            if self.refusals:
                raise self.refusals.pop()
            self.db.execute("COMMIT")
        except BaseException:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            raise
        finally:
            self.sizes.append(self.count() - before)

    def count(self):
        return self.db.execute("SELECT count(*) FROM t").fetchone()[0]

    def run(self, *works):
        """The outcome of each work, the first alone and the others queued behind it."""

        def outcome(work):
            try:
                return self.commits.run(work)
            except BaseException as error:
                return error

        with ThreadPoolExecutor(len(works)) as pool:
            found = [pool.submit(outcome, works[0])]
            assert self.started.wait(SECONDS)
            found += [pool.submit(outcome, work) for work in works[1:]]
            while len(self.commits._waiting) < len(works) - 1:
                pass
            self.queued.set()
            return [future.result(SECONDS) for future in found]


def insert(value, error=None):
    def work(db):
        db.execute("INSERT INTO t VALUES (?)", (value,))
        if error is not None:
            raise error
        return value

    return work


@pytest.fixture
def bench():
    return Bench()


def test_who_waits_is_committed_together_and_gets_its_own_result(bench):
    assert bench.run(*map(insert, range(6))) == list(range(6))
    assert bench.sizes == [1, 5]


def test_a_refused_call_takes_none_of_the_others_with_it(bench):
    refusal = InputError("no")
    assert bench.run(insert(0), insert(1), insert(2, refusal), insert(3)) == [0, 1, refusal, 3]
    assert sorted(bench.db.execute("SELECT n FROM t")) == [(0,), (1,), (3,)]


def test_after_an_unexpected_error_each_call_is_tried_alone(bench):
    one, two, three = bench.run(insert(0), insert(0), insert(2))[0:3]
    assert (one, three) == (0, 2)
    assert isinstance(two, sqlite3.IntegrityError)
    assert sorted(bench.db.execute("SELECT n FROM t")) == [(0,), (2,)]
    assert bench.sizes == [1, 0, 0, 1]


def test_a_commit_that_fails_once_is_done_by_each_alone(bench):
    def refuse_next(db):
        bench.refusals.append(StoreError("disk"))
        return insert(1)(db)

    works = [insert(0), insert(2), refuse_next]
    assert bench.run(*works)[:2] == [0, 2]


def test_where_the_database_is_locked_all_are_told_at_once(bench):
    def refuse_next(db):
        bench.refusals.append(StoreBusyError("locked"))
        return insert(1)(db)

    first, *others = bench.run(insert(0), insert(2), refuse_next)
    assert first == 0
    assert [type(error) for error in others] == [StoreBusyError, StoreBusyError]
    assert others[0] is not others[1]  # each thread raises its own
    assert bench.count() == 1


def test_an_interrupt_ends_the_call_it_hits_and_no_other(bench):
    interrupts = [KeyboardInterrupt()]

    def interrupted(db):
        if interrupts:
            raise interrupts.pop()
        return insert(2)(db)

    outcomes = bench.run(insert(0), insert(1), interrupted, insert(3))
    done = [value for value in outcomes if isinstance(value, int)]
    assert [type(value) for value in outcomes if value not in done] == [KeyboardInterrupt]
    assert sorted(bench.db.execute("SELECT n FROM t")) == [(value,) for value in done]
