"""The index file is a cache: whatever happens to it, the answers stay and at most one warning."""

import pickle
import random

import faiss
import pytest

QUERIES = ("task 3", "task 11", "something else")


def answers(memory):
    """Ids and similarities for some tasks; deterministic by similarity alone."""
    settings = {"k": 6, "fetch_k": 6, "q_weight": 0, "score_threshold": None}
    recalls = memory.recall_many(QUERIES, **settings)
    return [[(hit.id, hit.similarity) for hit in recall.memories] for recall in recalls]


@pytest.fixture
def index(folder):
    return folder / "intents.faiss"


@pytest.fixture
def expected(open_bank):
    """Fills a bank, closes it so that the index file is written, and gives its answers."""
    memory = open_bank()
    memory.remember_many([{"intent": f"task {n}", "lesson": f"lesson {n}"} for n in range(20)])
    found = answers(memory)
    memory.close()
    return found


def flip(data, position, bit):
    changed = bytearray(data)
    changed[position] ^= 1 << bit
    return bytes(changed)


DAMAGES = {
    "empty": lambda data: b"",
    "one byte": lambda data: data[:1],
    "half": lambda data: data[: len(data) // 2],
    "last byte missing": lambda data: data[:-1],
    "zero tail": lambda data: data[: -len(data) // 14] + bytes(len(data) // 14),
    "junk at the end": lambda data: data + b"junk",
    "something else": lambda data: b"IxF2" + b"\xff" * 500,
    "a pickle": lambda data: pickle.dumps({"ids": [1]}),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_replaced_with_one_warning(index, expected, open_bank, caplog, damage):
    index.write_bytes(DAMAGES[damage](index.read_bytes()))
    memory = open_bank()
    assert answers(memory) == expected
    assert answers(memory) == expected
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "does not fit its bank" in caplog.text
    assert "it is rebuilt" in caplog.text
    memory.close()
    caplog.clear()
    again = open_bank()
    assert answers(again) == expected
    assert again.verify().ok
    assert caplog.records == []


def test_no_flipped_bit_changes_an_answer(index, expected, open_bank):
    good, rng = index.read_bytes(), random.Random(1)
    places = {*range(0, 64, 7), *(rng.randrange(len(good)) for _ in range(30))}
    for position in sorted(places):
        index.write_bytes(flip(good, position, rng.randrange(8)))
        memory = open_bank()
        assert answers(memory) == expected
        memory.close()


def test_a_deleted_file_is_made_again_without_a_word(index, expected, open_bank, caplog):
    index.unlink()
    memory = open_bank()
    assert answers(memory) == expected
    memory.close()
    assert index.exists()
    assert caplog.records == []


def test_a_file_of_an_earlier_day_is_not_used(index, expected, open_bank, caplog):
    old = index.read_bytes()
    memory = open_bank()
    memory.forget(ids=[answers(memory)[0][0][0]])
    memory.remember("something else", "new lesson")
    now = answers(memory)
    memory.close()
    assert index.read_bytes() != old
    index.write_bytes(old)
    assert answers(open_bank()) == now
    assert len(caplog.records) == 1


def test_rows_written_after_the_file_are_found_and_forgotten_ones_are_not(
    index, expected, open_bank, caplog
):
    writer = open_bank()
    first = answers(writer)[0][0][0]
    written = index.read_bytes()
    new = writer.remember("something else", "new lesson").id
    writer.forget(ids=[first])
    assert index.read_bytes() == written  # as a crash would leave it
    found = answers(open_bank())
    assert found == answers(writer)
    assert first not in str(found)
    assert found[2][0] == (new, 1.0)
    assert caplog.records == []


def test_the_file_of_another_bank_is_not_used(index, expected, open_bank, tmp_path):
    with open_bank(tmp_path / "other") as other:
        other.remember("task 3", "lesson")
        other.recall("task 3")
    index.write_bytes((tmp_path / "other" / "intents.faiss").read_bytes())
    assert answers(open_bank()) == expected


def test_a_file_that_does_not_fit_never_reaches_faiss(index, expected, open_bank, monkeypatch):
    index.write_bytes(flip(index.read_bytes(), 40, 3))
    monkeypatch.setattr(faiss, "read_index", lambda *_: pytest.fail("FAISS read a foreign file"))
    assert answers(open_bank()) == expected


def test_a_rebuilt_index_gives_the_same_answers(index, expected, open_bank):
    memory = open_bank()
    memory.rebuild_index()
    assert answers(memory) == expected
    assert memory.verify().ok


def test_a_bank_forgotten_to_empty_is_filled_again(index, expected, open_bank):
    memory = open_bank()
    memory.forget(ids=[found.id for found in memory.list(limit=None)])
    assert answers(memory) == [[], [], []]
    memory.close()
    memory = open_bank()
    assert answers(memory) == [[], [], []]
    new = memory.remember("task 3", "new").id
    assert answers(memory)[0] == [(new, 1.0)]
    memory.close()
    assert answers(open_bank())[0] == [(new, 1.0)]


def test_a_file_that_cannot_be_written_is_a_warning_and_no_loss(index, expected, open_bank, caplog):
    memory = open_bank()
    new = memory.remember("something else", "new lesson").id
    memory.recall("something else")
    index.unlink()
    index.mkdir()  # renaming a file over a folder fails
    memory.close()
    assert ["was not saved" in record.message for record in caplog.records] == [True]
    assert [path.name for path in index.parent.iterdir() if path.suffix == ".tmp"] == []
    index.rmdir()
    assert answers(open_bank())[2][0] == (new, 1.0)


def test_nothing_is_ever_unpickled(index, expected, open_bank, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a pickle was loaded")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    index.with_suffix(".pkl").write_bytes(b"cos\nsystem\n(S'exit 1'\ntR.")
    memory = open_bank()
    assert answers(memory) == expected
    memory.rebuild_index()
    memory.close()
    assert answers(open_bank()) == expected


def test_an_index_that_cannot_be_read_is_rebuilt_with_one_warning(open_bank, folder, caplog):
    with open_bank() as memory:
        kept = memory.remember("task", "lesson")
    (folder / "intents.faiss").unlink(missing_ok=True)
    (folder / "intents.faiss").mkdir()
    memory = open_bank()
    assert memory.recall("task", score_threshold=None).ids == (kept.id,)
    assert caplog.text.count("it is rebuilt") == 1
