"""Going over to another embedding model, so that a kill in the middle costs nothing but time.

The new vectors are collected beside the old ones, keyed by the digest of their text, a batch a
transaction. Until all are there the bank works with the old model; then one transaction exchanges
all vectors, the model and the calibrations.
"""

from collections.abc import Callable, Sequence

from langchain_memrl.errors import EmbeddingMismatchError
from langchain_memrl.store.base import Fingerprint, Vector
from langchain_memrl.store.counters import count_intents
from langchain_memrl.store.database import Database
from langchain_memrl.store.encoding import checksum, digest, to_blob
from langchain_memrl.store.meta import (
    count,
    fingerprint,
    next_change,
    same_model,
    save_fingerprint,
    set_meta,
)
from langchain_memrl.store.rows import calibrate_namespace

NEXT = "next_"
BATCH = 256
Embed = Callable[[Sequence[str]], Sequence[Vector]]


def begin(db: Database, model: Fingerprint) -> None:
    """Go on with this model, or start with it and drop what was collected for another one."""
    earlier = fingerprint(db, NEXT)
    if earlier is None or not same_model(earlier, model):
        db.execute("DELETE FROM new_vectors")
        save_fingerprint(db, model, NEXT)


def count_texts(db: Database) -> tuple[int, int]:
    """How many texts have their new vector, and how many there are."""
    (done,) = db.execute("SELECT count(*) FROM new_vectors").fetchone()
    (intents,) = db.execute("SELECT count(DISTINCT digest) FROM intents WHERE id > 0").fetchone()
    return int(done), int(intents)


def missing_texts(db: Database, after: int) -> tuple[list[str], int]:
    """Texts without a new vector, of intents newer than `after`, and where to continue.

    The answers that episodes hold come last; nothing is left where the list is empty. Documents
    have no vector: their intent is not newer than 0.
    """
    rows = db.execute(
        "SELECT i.id, i.text FROM intents i WHERE i.id > ? AND NOT EXISTS "
        "(SELECT 1 FROM new_vectors n WHERE n.digest = i.digest) ORDER BY i.id LIMIT ?",
        (after, BATCH),
    ).fetchall()
    if rows:
        return [*dict.fromkeys(text for _, text in rows)], rows[-1][0]
    held = db.execute("SELECT DISTINCT held_intent FROM episodes WHERE held_intent IS NOT NULL")
    known = "SELECT 1 FROM new_vectors WHERE digest = ?"
    lacking = [
        text for (text,) in held.fetchall() if db.execute(known, (digest(text),)).fetchone() is None
    ]
    return lacking[:BATCH], after


def is_done(db: Database, model: Fingerprint) -> bool:
    """Whether another call has gone over to this model meanwhile.

    Raises:
        EmbeddingMismatchError: Another call is going over, or went over, to another model.
    """
    going_over, standing = fingerprint(db, NEXT), fingerprint(db)
    if going_over is not None and same_model(going_over, model):
        return False
    if going_over is None and standing is not None and same_model(standing, model):
        return True
    other = going_over or standing
    raise EmbeddingMismatchError(
        f"another call of reembed takes the bank over to {other and other.model} meanwhile; "
        f"call again to go over to {model.model}"
    )


def drop_unused(db: Database) -> None:
    """Drop collected vectors whose text was forgotten; held answers are embedded again."""
    db.execute("DELETE FROM new_vectors WHERE digest NOT IN (SELECT digest FROM intents)")


def keep(db: Database, texts: Sequence[str], vectors: Sequence[Vector]) -> None:
    """Keep new vectors until all are there."""
    db.executemany(
        "INSERT INTO new_vectors (digest, vector) VALUES (?, ?) "
        "ON CONFLICT (digest) DO UPDATE SET vector = excluded.vector",
        [(digest(text), to_blob(vector)) for text, vector in zip(texts, vectors, strict=True)],
    )


def complete(db: Database, embed: Embed) -> int:
    """Make every vector that is still missing, while others wait; how many."""
    made, after = 0, 0
    while True:
        texts, after = missing_texts(db, after)
        if not texts:
            return made
        keep(db, texts, embed(texts))
        made += len(texts)


def exchange(db: Database) -> bool:
    """Put the new vectors in the place of the old ones; False while some are missing."""
    model = fingerprint(db, NEXT)
    if model is None or missing_texts(db, 0)[0]:
        return False
    _exchange_intents(db)
    held = db.execute(
        "SELECT seq, held_intent, held_trajectory FROM episodes WHERE held_intent IS NOT NULL"
    )
    for seq, intent, trajectory in held.fetchall():
        (blob,) = db.execute(
            "SELECT vector FROM new_vectors WHERE digest = ?", (digest(intent),)
        ).fetchone()
        db.execute(
            "UPDATE episodes SET held_vector = ?, held_checksum = ? WHERE seq = ?",
            (blob, checksum(intent, trajectory, blob), seq),
        )
    db.execute("DELETE FROM new_vectors")
    db.execute("DELETE FROM meta WHERE key LIKE ?", (f"{NEXT}%",))
    save_fingerprint(db, model)
    set_meta(db, "generation", count(db, "generation") + 1)
    for (namespace,) in db.execute("SELECT namespace FROM calibrations").fetchall():
        if count_intents(db, namespace):
            calibrate_namespace(db, namespace, count_intents(db, namespace))
    return True


def _exchange_intents(db: Database) -> None:
    """Each intent its new vector and the checksum that goes with it, a batch at a time."""
    change, after = next_change(db), 0
    while True:
        rows = db.execute(
            "SELECT i.id, i.namespace, n.vector FROM intents i "
            "JOIN new_vectors n ON n.digest = i.digest WHERE i.id > ? ORDER BY i.id LIMIT ?",
            (after, BATCH),
        ).fetchall()
        if not rows:
            return
        db.executemany(
            "UPDATE intents SET vector = ?, checksum = ?, change = ? WHERE id = ?",
            [(blob, checksum(namespace, blob), change, id) for id, namespace, blob in rows],
        )
        after = rows[-1][0]
