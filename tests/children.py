"""What the tests run in other processes, started by a clean server that has imported everything."""

import multiprocessing

from langchain_memrl import EpisodicMemory
from langchain_memrl.offline import HashingEmbeddings

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    [
        *("langchain_memrl.memory", "langchain_memrl.offline", "langchain_memrl.evals.loop"),
        *("children", "pytest"),
    ]
)

SHARED = "the task that every round recalls"


def open_shared(folder):
    return EpisodicMemory.open(folder, embeddings=HashingEmbeddings(32))


def run_all(target, arguments):
    """Run one process per tuple of arguments; the exit codes."""
    children = [PROCESSES.Process(target=target, args=one) for one in arguments]
    for child in children:
        child.start()
    for child in children:
        child.join()
    return [child.exitcode for child in children]


def make_bank(folder, start, name):
    """Make the bank, or open it where another process was faster, and write one memory."""
    start.wait()
    with open_shared(folder) as memory:
        memory.remember(f"task of {name}", "lesson", episode_id=name)


def reward_often(folder, start, id, name, count):
    """Reward one memory `count` times with 1, in episodes of this process's own."""
    with open_shared(folder) as memory:
        start.wait()
        for number in range(count):
            memory.reinforce(f"{name} {number}", reward=1, ids=[id])


def do(folder, verb, arguments):
    """Call one verb in another process."""
    with open_shared(folder) as memory:
        getattr(memory, verb)(**arguments)


def open_when_told(folder, pipe):
    """Say that it begins, and open the bank."""
    pipe.send("now")
    open_shared(folder).close()
