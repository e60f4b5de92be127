"""The file of vectors: FAISS can read it, and a block is only looked at when it is needed."""

import faiss
import numpy as np
import pytest

from langchain_memrl.store.embedded import index_file
from langchain_memrl.store.embedded.index import FaissIndex
from langchain_memrl.store.embedded.index_file import (
    DamagedFileError,
    IndexFile,
    Stamp,
    write_index,
)

DIMENSION = 8
COUNTS = {"a": 5, "b": 40, "c": 3}


@pytest.fixture
def indexes():
    found, first = {}, 1
    for seed, (name, count) in enumerate(COUNTS.items()):
        rows = np.random.default_rng(seed).normal(size=(count, DIMENSION)).astype(np.float32)
        found[name] = FaissIndex(DIMENSION)
        found[name].add(np.arange(first, first + count), rows)
        first += count
    return found


@pytest.fixture
def path(tmp_path):
    return tmp_path / "vectors"


@pytest.fixture
def stamp(path, indexes, monkeypatch):
    monkeypatch.setattr(index_file, "BLOCK", 256)
    with path.open("wb") as file:
        return write_index(file, indexes)


def test_every_namespace_comes_back_aligned_and_unchanged(path, stamp, indexes):
    file = IndexFile(path, stamp)
    for name, (ids, vectors) in file.parts().items():
        file.check(name)
        assert np.array_equal(ids, indexes[name].ids)
        assert np.array_equal(vectors, indexes[name].vectors)
        assert vectors.flags.aligned
        assert not vectors.flags.writeable


def test_faiss_itself_reads_the_file(path, stamp, indexes):
    data = path.read_bytes()
    start = data.index(b"IxMp")
    whole = faiss.deserialize_index(np.frombuffer(data[start:], dtype=np.uint8))
    ids = np.concatenate([index.ids for index in indexes.values()])
    assert np.array_equal(faiss.vector_to_array(whole.id_map), ids)
    query = indexes["b"].vectors[7:8]
    assert whole.search(query / np.linalg.norm(query), 1)[1].tolist() in [[[i]] for i in ids]
    assert np.array_equal(faiss.downcast_index(whole.index).reconstruct(0), indexes["a"].vectors[0])


def test_the_stamp_survives_as_text(stamp):
    assert Stamp.from_json(stamp.to_json()) == stamp


@pytest.mark.parametrize(
    "text", [None, "", "{}", "[1,2,3]", '[1,2,[["a"]],[1]]', "[1,2,3,4]", b"x"]
)
def test_a_stamp_that_is_none_is_refused(text):
    with pytest.raises(DamagedFileError, match="stamp cannot be read"):
        Stamp.from_json(text)


def test_a_flipped_bit_is_noticed_by_the_namespaces_that_need_its_block(path, stamp):
    good = path.read_bytes()
    noticed = dict.fromkeys([*COUNTS, "opening"], 0)
    for position in range(len(good)):
        changed = bytearray(good)
        changed[position] ^= 16
        path.write_bytes(changed)
        try:
            file = IndexFile(path, stamp)
        except DamagedFileError:
            noticed["opening"] += 1
            continue
        found = []
        for name in COUNTS:
            try:
                file.check(name)
            except DamagedFileError:
                found.append(name)
        assert found, f"byte {position} is looked at by none"
        for name in found:
            noticed[name] += 1
    assert noticed["opening"]
    assert noticed["a"]
    assert noticed["b"] > 4 * noticed["a"]


def test_a_block_is_summed_up_once(path, stamp, monkeypatch):
    file = IndexFile(path, stamp)
    file.check("b")
    monkeypatch.setattr(index_file.zlib, "crc32", lambda *_: pytest.fail("summed up again"))
    file.check("b")


@pytest.mark.parametrize("size", [0, 1, 100, -1])
def test_a_file_of_another_length_is_refused(path, stamp, size):
    data = path.read_bytes()
    path.write_bytes(data[:size] if size < 1 else data + bytes(size))
    with pytest.raises((DamagedFileError, ValueError)):  # NumPy maps no empty file
        IndexFile(path, stamp)
