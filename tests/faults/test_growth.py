"""What is written to disk, and what stays there, is in proportion to the data."""

from pathlib import Path

from children import PROCESSES
from fakes import FakeEmbeddings

from langchain_memrl import EpisodicMemory

DIMENSION = 768
LESSON = "what was learned " * 20


def written():
    """Bytes that this process has handed to the system for writing."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["wchar"])


def fill(folder, count, pipe):
    """Add and reward four times `count` memories; tells the bytes written for each quarter."""
    quarters = []
    memory = EpisodicMemory.open(folder, embeddings=FakeEmbeddings(DIMENSION))
    for quarter in range(4):
        before = written()
        for number in range(quarter * count, (quarter + 1) * count):
            id = memory.remember(f"task {number}", LESSON).id
            memory.reinforce(f"e {number}", reward=1, ids=[id])
            if number % 10 == 0:
                assert memory.recall(f"task {number}", k=1, q_weight=0).ids == (id,)
        quarters.append(written() - before)
    memory.close()
    pipe.send(quarters)


def test_a_write_costs_the_same_in_a_large_bank_and_the_folder_is_as_large_as_its_data(
    folder, much
):
    """Nothing is rewritten as a whole: neither the index for an addition, nor text for a reward."""
    count = much(125, 2500)
    reader, writer = PROCESSES.Pipe(duplex=False)
    child = PROCESSES.Process(target=fill, args=(folder, count, writer))
    child.start()
    writer.close()
    quarters = reader.recv()
    child.join()
    data = 4 * count * (4 * DIMENSION + len(LESSON))
    size = sum(file.stat().st_size for file in folder.iterdir())
    print([f"{quarter / 2 / count / 1e3:.0f} kB per write" for quarter in quarters])
    print(f"{sum(quarters) / data:.1f} times the data written, folder {size / data:.2f} times")
    assert max(quarters) < 1.5 * min(quarters)
    assert size < 3 * data
