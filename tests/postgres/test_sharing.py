"""Many processes and threads on one bank: every call counts, and counts once."""

import asyncio
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from children import PROCESSES, SHARED, open_shared, run_all
from sharers import hold_a_transaction, open_at_once, share, write_until_killed

from langchain_memrl.errors import StoreBusyError

STEP = 0.3


def after(count):
    """Q_n = r + (1 - a)^n (Q_0 - r) with r = 1, Q_0 = 0."""
    return pytest.approx(1 - (1 - STEP) ** count, abs=1e-9)


def test_eight_processes_reward_and_write_in_three_namespaces_exactly_once(folder, much):
    count, processes, spaces = much(3, 60), 8, ("default", "acme", "a b/ä")
    with open_shared(folder) as memory:
        ids = {space: memory.remember(SHARED, "lesson", namespace=space).id for space in spaces}
    start = PROCESSES.Barrier(processes)
    codes = run_all(share, [(folder, start, f"p{n}", ids, count) for n in range(processes)])
    assert codes == [0] * processes
    with open_shared(folder) as memory:
        for space, id in ids.items():
            episodes = processes * count + count  # of each its own, and the common ones
            found = memory.get(id, namespace=space)
            assert (found.updates, found.q_value) == (episodes, after(episodes))
            assert len(memory.history(id, namespace=space)) == episodes
            written = [one.lesson for one in memory.list(limit=None, namespace=space)]
            assert len(written) == len(set(written)) == 1 + episodes
        assert memory.verify().problems == ()


def test_six_processes_may_make_the_same_bank_at_once(folder):
    start = PROCESSES.Barrier(6)
    codes = run_all(open_at_once, [(folder, start, f"p{n}") for n in range(6)])
    assert codes == [0] * 6
    with open_shared(folder) as memory:
        assert (memory.stats().memories, memory.verify().problems) == (6, ())


def test_sixteen_threads_reward_through_one_object(open_bank):
    bank = open_bank()
    id = bank.remember("task", "lesson").id
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda n: bank.reinforce(f"e{n}", reward=1, ids=[id]), range(100)))
    assert (bank.get(id).updates, bank.get(id).q_value) == (100, after(100))


def test_writers_of_different_namespaces_do_not_wait_for_each_other(open_bank):
    bank = open_bank()
    bank.remember("task", "lesson")
    with bank._store._server.write("default"), ThreadPoolExecutor(1) as threads:
        other = threads.submit(bank.remember, "task", "lesson", namespace="other")
        assert other.result(timeout=10).namespace == "other"


async def test_the_event_loop_goes_on_while_calls_wait_for_the_server(open_bank):
    bank = open_bank()
    id = (await bank.aremember("task", "lesson")).id
    late, end = [], asyncio.Event()

    async def tick():
        while not end.is_set():
            before = time.perf_counter()
            await asyncio.sleep(0.01)
            late.append(time.perf_counter() - before)

    ticker = asyncio.create_task(tick())
    with bank._store._server.write("default"):
        calls = [
            asyncio.create_task(bank.areinforce(f"e{n}", reward=1, ids=[id])) for n in range(5)
        ]
        await asyncio.sleep(0.5)
        assert not any(call.done() for call in calls)
    await asyncio.gather(*calls, *(bank.arecall("task", episode_id=f"r{n}") for n in range(20)))
    end.set()
    await ticker
    assert bank.get(id).updates == 5
    assert sorted(late)[len(late) // 2] < 0.05


# --- killed clients -----------------------------------------------------------------------------


def test_a_killed_client_leaves_no_lock_and_nothing_half_done(folder, open_bank):
    bank = open_bank()
    bank.remember("task", "lesson")
    reader, writer = PROCESSES.Pipe(duplex=False)
    child = PROCESSES.Process(target=hold_a_transaction, args=(folder, writer))
    child.start()
    assert reader.recv() == "holding"
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(bank.remember, "another", "lesson")
        time.sleep(0.2)
        assert not waiting.done()
        child.kill()
        child.join()
        assert waiting.result(timeout=20).intent == "another"
    assert bank.stats().episodes == 2
    assert bank.verify().problems == ()


def test_no_acknowledged_write_of_a_killed_client_is_lost(folder, open_bank, much):
    bank = open_bank(embeddings=None)
    with open_shared(folder) as first:
        id = first.remember(SHARED, "lesson").id
    told, in_flight = [], 0
    for kill in range(much(3, 200)):
        reader, writer = PROCESSES.Pipe(duplex=False)
        child = PROCESSES.Process(target=write_until_killed, args=(folder, writer, f"k{kill}", id))
        child.start()
        writer.close()
        told += [reader.recv() for _ in range(7 + kill % 5)]
        child.kill()
        child.join()
        told += everything_sent(reader)
        in_flight += 1
    written = {one.episode_id for one in bank.list(limit=None)}
    assert {episode for kind, episode in told if kind == "remember"} <= written
    rewarded = {step.episode_id for step in bank.history(id)}
    assert {episode for kind, episode in told if kind == "reinforce"} <= rewarded
    assert len(written) + len(rewarded) - 1 <= len(told) + in_flight
    assert (bank.get(id).updates, bank.get(id).q_value) == (len(rewarded), after(len(rewarded)))
    assert bank.verify().problems == ()


def everything_sent(reader):
    found = []
    while reader.poll():
        try:
            found.append(reader.recv())
        except (EOFError, OSError):
            break
    return found


# --- forks, and the end of a process ------------------------------------------------------------


def test_a_forked_child_is_refused_and_its_end_disturbs_nobody(open_bank, in_child):
    bank = open_bank()
    bank.remember("task", "lesson")
    for _ in range(3):
        assert "before this process was forked; open it again" in in_child(bank.stats)
        assert in_child(bank.close) == "returned None"
        assert bank.remember("another", "lesson").intent == "another"
    assert bank.verify().problems == ()


def test_a_fork_in_the_middle_of_calls_disturbs_nobody(open_bank, in_child):
    bank, end = open_bank(), threading.Event()
    id = bank.remember("task", "lesson").id

    def work(name):
        done = 0
        while not end.is_set():
            bank.reinforce(f"{name} {done}", reward=1, ids=[id])
            done += 1
        return done

    with ThreadPoolExecutor(2) as threads:
        calls = [threads.submit(work, name) for name in "ab"]
        answers = [in_child(bank.stats) for _ in range(5)]
        end.set()
        assert bank.get(id).updates <= sum(call.result() for call in calls)
    assert all("before this process was forked" in answer for answer in answers)
    assert bank.get(id).updates == sum(call.result() for call in calls)


PROGRAM = """
import asyncio, sys, warnings
warnings.simplefilter("error")
from langchain_memrl import EpisodicMemory
from langchain_memrl.offline import HashingEmbeddings
memory = EpisodicMemory.open(sys.argv[1], embeddings=HashingEmbeddings(32))
memory.remember("task", "lesson")
asyncio.run(memory.arecall("task", episode_id="e"))
print(memory.reinforce("e", reward=1).credits[0].after)
"""


def test_a_program_that_never_closes_the_bank_ends_quietly(folder):
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error::ResourceWarning", "-c", PROGRAM, folder],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (0, "0.3", "")


def test_a_lock_that_stays_is_a_retryable_error_and_the_repeat_counts_once(
    impatient, folder, open_bank, server
):
    bank, other = open_bank(), open_bank(folder)
    id = bank.remember("task", "the secret lesson").id
    with other._store._server.write("default"):
        with pytest.raises(StoreBusyError, match="locked by another connection") as caught:
            bank.reinforce("e", reward=1, ids=[id])
        assert "secret" not in str(caught.value)
        assert len(bank.recall("task").ids) == 1  # readers never wait
    assert bank.reinforce("e", reward=1, ids=[id]).applied
    assert not bank.reinforce("e", reward=1, ids=[id]).applied
    assert bank.get(id).updates == 1


def test_with_all_connections_in_use_a_call_waits_and_then_fails_retryably(
    impatient, monkeypatch, open_bank
):
    monkeypatch.setattr("langchain_memrl.store.postgres.server.MOST_CONNECTIONS", 2)
    bank = open_bank()
    bank.remember("task", "lesson")
    rows, told = bank._store._server, "all 2 connections of this process were in use"
    with rows.read(), rows.read(), pytest.raises(StoreBusyError, match=told):
        bank.stats()
    assert bank.stats().memories == 1
