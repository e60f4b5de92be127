"""The server is killed with everything it runs, and started again from the same folder."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from children import open_shared

from langchain_memrl.errors import MemRLError, StoreBusyError
from langchain_memrl.store.postgres import pool

STEP = 0.3
WORKERS = 4


@pytest.fixture
def place(mortal):
    """The location of a new bank."""
    return mortal.new_location()


@pytest.fixture
def bank(place):
    with open_shared(place) as memory:
        yield memory


@pytest.fixture
def killed(mortal):
    """Kills the server, and starts it again at the end at the latest."""
    yield mortal.kill
    mortal.start()


class Worker:
    """Writes and rewards until told to end; repeats what failed, with the same episode id."""

    def __init__(self, memory, name, id, end):
        self.memory, self.name, self.id, self.end = memory, name, id, end
        self.errors, self.written, self.done = [], {}, 0

    def run(self):
        while not self.end.is_set():
            episode = f"{self.name} {self.done}"
            task, lesson = f"task {episode}", f"lesson {episode}"
            made = self.until_done(
                lambda: self.memory.remember(task, lesson, episode_id=episode)  # noqa: B023
            )
            self.written[episode] = made.id
            self.until_done(
                lambda: self.memory.reinforce(f"r {episode}", reward=1, ids=[self.id])  # noqa: B023
            )
            self.done += 1

    def until_done(self, call):
        while True:
            try:
                return call()
            except MemRLError as error:
                self.errors.append(error)
                time.sleep(0.02)


def test_under_load_every_acknowledged_write_stays_and_repeats_count_once(
    mortal, place, bank, much
):
    id = bank.remember("shared", "lesson").id
    end = threading.Event()
    workers = [Worker(bank, f"w{n}", id, end) for n in range(WORKERS)]
    with ThreadPoolExecutor(WORKERS) as threads:
        runs = [threads.submit(worker.run) for worker in workers]
        for _ in range(much(2, 40)):
            time.sleep(0.4)
            mortal.kill()
            time.sleep(0.1)
            mortal.start()
        time.sleep(0.4)
        end.set()
        for run in runs:
            run.result(timeout=60)
    errors = [error for worker in workers for error in worker.errors]
    assert errors
    assert {type(error) for error in errors} == {StoreBusyError}
    assert not any("lesson" in str(error) for error in errors)
    done = sum(worker.done for worker in workers)
    with open_shared(place) as again:
        for memory in (bank, again):  # the object that was open all the time, and a new one
            found = {one.episode_id: one.id for one in memory.list(limit=None)}
            for worker in workers:
                assert worker.written.items() <= found.items()
            assert len(found) == 1 + done
            assert memory.get(id).updates == done
            assert memory.get(id).q_value == pytest.approx(1 - (1 - STEP) ** done, abs=1e-9)
            assert memory.verify().problems == ()


def test_a_thread_that_waits_for_a_lock_gets_a_retryable_error(mortal, bank, killed):
    bank.remember("task", "lesson")
    with ThreadPoolExecutor(1) as threads:
        holder = bank._store._server.write("default")
        holder.__enter__()
        waiting = threads.submit(bank.remember, "another", "lesson", episode_id="e")
        time.sleep(0.2)
        assert not waiting.done()
        killed()
        with pytest.raises(StoreBusyError):
            holder.__exit__(None, None, None)
        with pytest.raises(StoreBusyError, match="call again, with the same episode id"):
            waiting.result(timeout=20)
    mortal.start()
    made = bank.remember("another", "lesson", episode_id="e")
    assert bank.remember("another", "lesson", episode_id="e").id == made.id
    assert (bank.stats().memories, bank.verify().problems) == (2, ())


def test_while_the_server_is_away_calls_fail_at_once_and_then_work_again(
    mortal, place, bank, killed
):
    id = bank.remember("task", "lesson").id
    killed()
    for wait in (0, 1.1 * pool.FRESH_SECONDS):
        time.sleep(wait)
        start = time.perf_counter()
        for call in (
            bank.stats,
            lambda: bank.recall("task", episode_id="e"),
            lambda: bank.reinforce("e2", reward=1, ids=[id]),
            lambda: bank.remember("other", "lesson"),
            lambda: open_shared(place),
        ):
            with pytest.raises(StoreBusyError, match="the connection was lost or refused"):
                call()
        assert time.perf_counter() - start < 5
    mortal.start()
    assert bank.recall("task", episode_id="e").ids == (id,)
    assert bank.reinforce("e", reward=1).credits[0].after == STEP


def test_connections_that_broke_while_nobody_used_them_are_not_noticed_by_callers(mortal, bank):
    bank.remember("task", "lesson")
    with bank._store._server.read(), bank._store._server.read():
        pass  # two connections are open now
    time.sleep(1.1 * pool.FRESH_SECONDS)
    mortal.kill()
    mortal.start()
    assert bank.stats().memories == 1
    assert bank.remember("other", "lesson").intent == "other"


def test_a_connection_that_an_administrator_ends_is_a_retryable_error(mortal, bank):
    bank.remember("task", "lesson")
    holder = bank._store._server.write("default")
    (pid,) = holder.__enter__().execute("SELECT pg_backend_pid()").fetchone()
    with mortal.connect() as admin:
        admin.execute("SELECT pg_terminate_backend(%s)", (pid,))
    with pytest.raises(StoreBusyError, match="terminating connection"):
        holder.__exit__(None, None, None)
    assert bank.remember("other", "lesson").intent == "other"
    assert bank.verify().problems == ()
