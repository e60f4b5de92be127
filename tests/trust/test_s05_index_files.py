"""S5: a hostile index file never reaches FAISS and never changes an answer.

Flipped bits, cuts, exchanged and outdated files are tried in `store/test_index_file.py` and
`faults/test_damage.py`. Here they are made by hand, as by somebody who may write into the folder.
"""

import os
import random
import struct
import subprocess
import sys

import numpy as np
import pytest

faiss = pytest.importorskip("faiss")
HUGE = 2**40


def valid(count, dimension=16):
    """A file that FAISS reads, with random vectors."""
    index = faiss.IndexFlatIP(dimension)
    index.add(np.random.default_rng(0).normal(size=(count, dimension)).astype(np.float32))
    return bytes(faiss.serialize_index(index))


def header(kind=b"IxFI", dimension=16, count=5, size=None):
    """The head of a flat index that says what is asked for, and no vectors."""
    head = struct.pack("<4siqqqBi", kind, dimension, count, 1 << 20, 1 << 20, 1, 0)
    return head + struct.pack("<Q", abs(count * dimension) if size is None else size)


FORGED = {
    "another index": valid(9),
    "huge count": header(count=HUGE),
    "huge dimension": header(dimension=2**31 - 1),
    "negative count": header(count=-1),
    "huge vector": header(size=2**63),
    "id map without an index": b"IxMp" + b"\0" * 40,
    "null sub-index": b"IxM2" + header()[4:36] + b"null",
    "nested id maps": b"IxMpIxMpIxMp" * 1000,
    "inverted lists": b"IwFl" + header()[4:] + b"ilar" + struct.pack("<QQ", HUGE, HUGE),
    "graph": b"IHNf" + header()[4:] + b"\xff" * 64,
    "empty": b"",
    "zeros": b"\0" * 4096,
    "text": b"not an index at all",
}


@pytest.fixture
def closed(open_bank, folder):
    """A bank on disk that was searched and closed, and its answer."""
    with open_bank() as bank:
        bank.remember_many([{"intent": f"task {n}", "lesson": f"lesson {n}"} for n in range(20)])
        bank.recall("task 3", score_threshold=None)
    return answer(open_bank)


def answer(open_bank):
    with open_bank() as bank:
        recall = bank.recall("task 3", k=20, fetch_k=20, score_threshold=None)
        return [(hit.id, hit.similarity) for hit in recall.memories]


def index_files(folder):
    found = [path for path in folder.iterdir() if path.suffix == ".faiss"]
    assert found
    return found


@pytest.mark.parametrize("data", FORGED.values(), ids=FORGED)
def test_a_forged_file_never_reaches_faiss(closed, open_bank, folder, monkeypatch, data):
    for name in ("read_index", "deserialize_index", "read_index_binary"):
        monkeypatch.setattr(faiss, name, lambda *_: pytest.fail("FAISS read a forged file"))
    for path in index_files(folder):
        path.write_bytes(data)
        assert answer(open_bank) == closed


def test_fuzzed_files_leave_the_answer_as_it_is(closed, open_bank, folder, much):
    draw = random.Random(5)
    (path,) = index_files(folder)[:1]
    whole = path.read_bytes()
    for _ in range(much(40, 500)):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 20)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        start = draw.randrange(len(data))
        data[start : start + 8] = struct.pack("<q", draw.choice([HUGE, -1, 0, 2**63 - 1]))
        path.write_bytes(bytes(data))
        assert answer(open_bank) == closed


PEAK = """
import resource, sys
from fakes import FakeEmbeddings
from langchain_memrl import EpisodicMemory
with EpisodicMemory.open(sys.argv[1], embeddings=FakeEmbeddings()) as bank:
    assert len(bank.recall("task 3", k=20, fetch_k=20, score_threshold=None).ids) == 20
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_a_huge_count_takes_no_memory(closed, folder):
    def peak():
        done = subprocess.run(
            [sys.executable, "-c", PEAK, str(folder)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        return int(done.stdout)

    normal = peak()
    for path in index_files(folder):
        path.write_bytes(FORGED["huge count"])
    assert peak() < 2 * normal
