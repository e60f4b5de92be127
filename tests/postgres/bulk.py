"""Banks of hundreds of thousands of rows, copied in, because writing them would take minutes."""

import json

import numpy as np

from langchain_memrl.store import counters
from langchain_memrl.store.encoding import checksum, digest, to_blob
from langchain_memrl.store.postgres.connection import PostgresConnection, numbers
from langchain_memrl.store.rows import memory_checksum, stamp, utc_now

COLUMNS = {
    "intents": "id, namespace, digest, text, vector, change, checksum",
    "intent_vectors": "id, namespace, embedding",
    "memories": "seq, id, namespace, intent_id, q_init, q, outcome, source, trust, created_at",
    "experiences": "seq, episode_id, parents, derived_from, updated_at, metadata, lesson, "
    "trajectory, checksum",
}


def clustered(size, dimension, seed=0, clusters=100):
    """Unit vectors in clusters, as real tasks are."""
    rng = np.random.default_rng([seed, size, dimension])
    centres = rng.standard_normal((clusters, dimension), dtype=np.float32)
    rows = centres[rng.integers(clusters, size=size)]
    rows = rows + rng.standard_normal((size, dimension), dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def copy_in(db, namespace, vectors, kinds=("usual",)):
    """One memory per vector; its metadata name one of the kinds, in turn.

    Args:
        db: A connection of psycopg that looks at the bank's schema.
        namespace: Where they go.
        vectors: Shape (n, d).
        kinds: `{"kind": ...}` of the metadata.
    """
    now, first = stamp(utc_now()), db.execute("SELECT coalesce(max(id), 0) FROM intents")
    start = first.fetchone()[0] + 1
    rows = {"intents": [], "intent_vectors": [], "memories": [], "experiences": []}
    for number, vector in enumerate(vectors, start):
        text, blob, id = f"{namespace} task {number}", to_blob(vector), f"m-{number}"
        metadata = json.dumps({"kind": kinds[number % len(kinds)]})
        texts = (id, namespace, text, "lesson", "", "unknown", 0.0, 0, 0, "[]", "[]")
        origin = (f"e-{number}", "agent", "trusted", now, now, 0, 0, metadata, "")
        sums = checksum(namespace, blob), memory_checksum((*texts, *origin))
        rows["intents"].append((number, namespace, digest(text), text, blob, 0, sums[0]))
        rows["intent_vectors"].append((number, namespace, numbers(vector)))
        rows["memories"].append(
            (number, id, namespace, number, 0.0, 0.0, "unknown", "agent", "trusted", now)
        )
        rows["experiences"].append(
            (number, f"e-{number}", "[]", "[]", now, metadata, "lesson", "", sums[1])
        )
    with db.transaction():
        db.execute("SET LOCAL session_replication_role TO replica")  # without triggers
        for table, values in rows.items():
            order = f"COPY {table} ({COLUMNS[table]}) FROM STDIN"
            with db.cursor() as cursor, cursor.copy(order) as copy:
                for row in values:
                    copy.write_row(row)
        for table, column in (("intents", "id"), ("memories", "seq")):
            db.execute(
                f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), max({column})) "
                f"FROM {table}"
            )
    counters.recount(PostgresConnection(db))
    db.execute("ANALYZE")


def fill_up(db, namespace, size, dimension):
    """Rows of somebody else, made by the server: enough to be in the way, not to be read."""
    with db.transaction():
        db.execute("SET LOCAL session_replication_role TO replica")  # without triggers
        for statement in (
            "INSERT INTO intents (id, namespace, digest, text, vector, checksum) "
            "SELECT n, %(space)s, decode(md5(n::text), 'hex'), 'task ' || n, '', 0 FROM numbers",
            "INSERT INTO intent_vectors (id, namespace, embedding) SELECT n, %(space)s, "
            "ARRAY(SELECT random() - .5 + 0 * n FROM generate_series(1, %(dimension)s))::vector "
            "FROM numbers",
            "INSERT INTO memories (seq, id, namespace, intent_id, q_init, q, outcome, source, "
            "trust, created_at) SELECT n, 'f-' || n, %(space)s, n, 0, 0, 'unknown', 'agent', "
            "'trusted', '2026-01-01' FROM numbers",
            "INSERT INTO experiences (seq, episode_id, parents, derived_from, updated_at, metadata,"
            " lesson, trajectory) SELECT n, 'f-' || n, '[]', '[]', '2026-01-01', "
            """'{"kind": "a"}', 'lesson', '' FROM numbers""",
        ):
            numbers = "WITH numbers AS (SELECT generate_series(1001, 1000 + %(size)s) AS n) "
            db.execute(
                numbers + statement, {"space": namespace, "size": size} | {"dimension": dimension}
            )
    counters.recount(PostgresConnection(db))
    db.execute("ANALYZE")
