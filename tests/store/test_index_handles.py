"""Several handles on one bank: none of them brings back what another one changed."""

import sqlite3

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings

from langchain_memrl.errors import StoreError
from langchain_memrl.store.embedded.sidecar import FILE_NAME
from langchain_memrl.store.encoding import to_blob, to_vector

TEXTS = [f"task {n}" for n in range(20)]


class Model(Embeddings):
    """Vectors of a random model, the same for every text each time."""

    def __init__(self, name: str, dimension: int) -> None:
        self.model, self._dimension = name, dimension

    def embed_documents(self, texts):
        seeds = ([*f"{self.model} {text}".encode()] for text in texts)
        return [np.random.default_rng(seed).normal(size=self._dimension).tolist() for seed in seeds]

    def embed_query(self, text):
        return self.embed_documents([text])[0]


def answers(memory):
    recalls = memory.recall_many(TEXTS, k=20, fetch_k=20, q_weight=0, score_threshold=None)
    return [[(hit.memory.intent, hit.similarity) for hit in recall.memories] for recall in recalls]


def expected(folder):
    """The same from the rows alone, in NumPy."""
    with sqlite3.connect(folder / FILE_NAME) as db:
        rows = db.execute("SELECT text, vector FROM intents ORDER BY id DESC").fetchall()
    texts, table = [row[0] for row in rows], np.stack([to_vector(row[1]) for row in rows])
    table = table.astype(np.float64) / np.linalg.norm(table.astype(np.float64), axis=1)[:, None]
    found = []
    for text in TEXTS:
        close = np.round(table @ table[texts.index(text)], 6)
        found.append([(texts[n], close[n]) for n in np.argsort(-close, kind="stable")])
    return found


def same(found, truth):
    return [
        [(text, pytest.approx(close, abs=2e-6)) for text, close in one] for one in truth
    ] == found


@pytest.mark.parametrize("dimension", [16, 24])
def test_a_handle_from_before_a_reembed_leaves_no_vectors_of_the_old_model(
    open_bank, folder, dimension
):
    old, new = Model("old", 16), Model("new", dimension)
    first = open_bank(embeddings=old)
    first.remember_many([{"intent": text, "lesson": "lesson"} for text in TEXTS])
    first.recall(TEXTS[3])  # its index is not saved yet
    second = open_bank(embeddings=old)
    second.reembed(new)
    second.close()
    first.close()
    third = open_bank(embeddings=new)
    assert same(answers(third), expected(folder))
    assert third.verify().ok


def test_a_handle_from_before_a_compaction_brings_no_forgotten_vector_back(open_bank, folder):
    first = open_bank(embeddings=Model("m", 16))
    made = first.remember_many([{"intent": text, "lesson": "lesson"} for text in TEXTS])
    first.recall(TEXTS[3])
    with sqlite3.connect(folder / FILE_NAME) as db:
        sql = "SELECT vector FROM intents WHERE text = ?"
        (blob,) = db.execute(sql, (TEXTS[5],)).fetchone()
    second = open_bank(embeddings=Model("m", 16))
    second.forget(ids=[made[5].id])
    second.compact()
    second.close()
    first.close()
    left = [path.name for path in folder.iterdir() if to_blob(to_vector(blob)) in path.read_bytes()]
    assert left == []


def test_a_file_that_was_written_over_while_open_is_not_stamped_as_good(open_bank, folder):
    def filled():
        memory = open_bank(embeddings=Model("m", 16))
        memory.remember_many([{"intent": text, "lesson": "lesson"} for text in TEXTS])
        memory.recall(TEXTS[3])
        return memory

    filled().close()
    memory = open_bank(embeddings=Model("m", 16))
    memory.recall(TEXTS[3])
    path = folder / "intents.faiss"
    good = path.read_bytes()
    with path.open("r+b") as file:  # in place: the mapped bytes change too
        file.seek(200)
        file.write(bytes(64))
    assert len(path.read_bytes()) == len(good)
    memory.remember("something else", "lesson")
    memory.recall("something else")
    memory.close()
    again = open_bank(embeddings=Model("m", 16))
    again.recall(TEXTS[3])
    assert again.verify().ok


@pytest.mark.parametrize("begun", ["BEGIN", "BEGIN IMMEDIATE"])
def test_a_transaction_that_an_interrupt_left_open_is_ended_by_the_next_call(
    open_bank, folder, begun
):
    memory = open_bank(embeddings=Model("m", 16))
    memory.remember(TEXTS[0], "lesson")
    memory._store._sidecar._connection.execute(begun)
    assert memory.recall(TEXTS[0]).memories
    memory.remember(TEXTS[1], "lesson")
    with sqlite3.connect(folder / FILE_NAME, timeout=0, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")


def test_an_interrupt_while_a_write_waits_for_its_lock_leaves_the_bank_usable(
    open_bank, folder, monkeypatch
):
    memory = open_bank(embeddings=Model("m", 16))
    memory.remember(TEXTS[0], "lesson")
    sidecar = memory._store._sidecar

    class Interrupted:
        """A connection whose next BEGIN IMMEDIATE is followed by an interrupt."""

        def __init__(self, connection):
            self._connection = connection

        def __getattr__(self, name):
            return getattr(self._connection, name)

        def execute(self, sql, *values):
            found = self._connection.execute(sql, *values)
            if sql == "BEGIN IMMEDIATE":
                sidecar._connection = self._connection
                raise KeyboardInterrupt
            return found

    sidecar._connection = Interrupted(sidecar._connection)
    with pytest.raises(KeyboardInterrupt):
        memory.remember(TEXTS[1], "lesson")
    with sqlite3.connect(folder / FILE_NAME, timeout=0, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")
    try:
        memory.remember(TEXTS[1], "lesson")
    except StoreError as error:
        pytest.fail(str(error))
