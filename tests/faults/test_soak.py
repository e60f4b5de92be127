"""Hours of use: memory, open files, threads and the folder stay as large as the bank is."""

import os
import random
import time
from pathlib import Path

from children import PROCESSES, SHARED
from workers import open_bank

SIZE = 200
"""Memories that the bank keeps."""


def resident():
    """Bytes of memory of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


def measured():
    """Resident memory, open files, threads."""
    return resident(), len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


def use(memory, rng, number):
    """One episode, whose memory takes the place of a random older one, and looks at the bank."""
    name, task = f"episode {number}", f"{SHARED} {rng.randrange(50)}"
    memory.recall(task, episode_id=name, score_threshold=None)
    if number % 3:
        memory.remember(task, f"lesson {number} " * 20, episode_id=name)
    else:
        memory.hold(name, intent=task, trajectory=f"what was done {number} " * 20)
    memory.reinforce(name, reward=rng.choice((1, -1, 0.5)))
    memory.forget(ids=[rng.choice(memory.list(limit=SIZE)).id])
    if number % 10 == 0:
        assert memory.stats().memories == SIZE


def soak(folder, seconds, warm_up, pipe):
    """Use a bank for some seconds; tells what was measured after the warm-up and at the end."""
    rng, number = random.Random(1), 0
    with open_bank(folder) as memory:
        for start in range(SIZE):
            memory.remember(f"{SHARED} {start % 50}", f"lesson {start} " * 20)
        end = time.monotonic() + seconds
        while number < warm_up or time.monotonic() < end:
            use(memory, rng, number)
            number += 1
            if number == warm_up:
                pipe.send(measured())
        pipe.send(measured())
        pipe.send(number)
        memory.compact()
        assert memory.verify().problems == ()


def test_in_use_nothing_grows_but_the_ledger(folder, tmp_path, much):
    reader, writer = PROCESSES.Pipe(duplex=False)
    arguments = (folder, much(8, 1200), much(200, 5000), writer)
    child = PROCESSES.Process(target=soak, args=arguments)
    child.start()
    writer.close()
    try:
        memory, files, threads = reader.recv()
        memory_after, files_after, threads_after = reader.recv()
        count = reader.recv()
        child.join()
    finally:
        child.kill()
    assert child.exitcode == 0
    print(f"{count} episodes, {memory / 1e6:.1f} MB after the warm-up, {memory_after / 1e6:.1f} MB")
    assert memory_after < 1.05 * memory
    assert (files_after, threads_after) == (files, threads)
    with open_bank(folder) as bank:
        bank.export_jsonl(tmp_path / "export.jsonl")
    size = sum(file.stat().st_size for file in folder.iterdir())
    assert size < 3 * (tmp_path / "export.jsonl").stat().st_size
