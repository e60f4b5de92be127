"""The SQLite schema as named steps. Each runs in one transaction with its own record.

A new column or table is the next function here, added to `MIGRATIONS`; steps that were released
never change.
"""

from langchain_memrl.errors import StoreCorruptError, StoreNotFoundError, StoreVersionError
from langchain_memrl.store import counters
from langchain_memrl.store.embedded.connection import SqliteConnection
from langchain_memrl.store.encoding import checksum
from langchain_memrl.store.rows import seal

APPLICATION_ID = 0x4D656D52  # "MemR" in the file header


def m001_first_schema(connection: SqliteConnection) -> None:
    """Intents with vectors, memories with Q, texts, episodes, recalls, ledger, history."""
    for statement in (
        # bank_id, secret, learning, model, dimension, probes, change, index_change, index_sha256
        "CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID",
        """CREATE TABLE intents (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            namespace TEXT NOT NULL,
            digest BLOB NOT NULL,
            text TEXT NOT NULL,
            vector BLOB NOT NULL,
            change INTEGER NOT NULL,
            UNIQUE (namespace, digest))""",
        "CREATE INDEX intents_change ON intents (change)",
        # Intents whose last memory was forgotten: other processes drop them from their index.
        """CREATE TABLE forgotten_intents (
            id INTEGER PRIMARY KEY, namespace TEXT NOT NULL, change INTEGER NOT NULL)""",
        "CREATE INDEX forgotten_intents_change ON forgotten_intents (change)",
        # Narrow on purpose: moving Q never rewrites a text.
        """CREATE TABLE memories (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            namespace TEXT NOT NULL,
            intent_id INTEGER NOT NULL REFERENCES intents (id),
            q_init REAL NOT NULL,
            q REAL NOT NULL,
            updates INTEGER NOT NULL DEFAULT 0,
            selections INTEGER NOT NULL DEFAULT 0,
            disabled INTEGER NOT NULL DEFAULT 0,
            pinned INTEGER NOT NULL DEFAULT 0,
            outcome TEXT NOT NULL,
            source TEXT NOT NULL,
            trust TEXT NOT NULL,
            created_at TEXT NOT NULL)""",
        "CREATE INDEX memories_intent ON memories (intent_id)",
        "CREATE INDEX memories_namespace ON memories (namespace, seq)",
        "CREATE INDEX memories_disabled ON memories (namespace) WHERE disabled = 1",
        """CREATE TABLE experiences (
            seq INTEGER PRIMARY KEY REFERENCES memories (seq) ON DELETE CASCADE,
            episode_id TEXT NOT NULL,
            parents TEXT NOT NULL,
            derived_from TEXT NOT NULL,
            updated_at TEXT NOT NULL,
            metadata TEXT NOT NULL,
            lesson TEXT NOT NULL,
            trajectory TEXT NOT NULL)""",
        """CREATE TABLE episodes (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            namespace TEXT NOT NULL,
            episode_id TEXT NOT NULL,
            held_intent TEXT,
            held_vector BLOB,
            held_trajectory TEXT,
            created_at TEXT NOT NULL,
            UNIQUE (namespace, episode_id))""",
        # What a recall showed, and what a later comparison of rankings needs.
        """CREATE TABLE recalls (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            episode INTEGER NOT NULL REFERENCES episodes (seq) ON DELETE CASCADE,
            recall_id TEXT NOT NULL,
            digest BLOB NOT NULL,
            intent TEXT NOT NULL,
            memory_ids TEXT NOT NULL,
            candidates TEXT NOT NULL,
            settings TEXT NOT NULL,
            similarity_max REAL,
            explored INTEGER NOT NULL,
            created_at TEXT NOT NULL,
            UNIQUE (episode, digest))""",
        # Exactly once: one row per episode and operation, written with the effect itself.
        """CREATE TABLE ledger (
            namespace TEXT NOT NULL,
            episode_id TEXT NOT NULL,
            operation TEXT NOT NULL,
            reward REAL,
            skipped TEXT,
            memory_id TEXT,
            digest BLOB,
            created_at TEXT NOT NULL,
            PRIMARY KEY (namespace, episode_id, operation)) WITHOUT ROWID""",
        """CREATE TABLE q_history (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            memory INTEGER NOT NULL REFERENCES memories (seq) ON DELETE CASCADE,
            episode INTEGER NOT NULL REFERENCES episodes (seq) ON DELETE CASCADE,
            reward REAL NOT NULL,
            before REAL NOT NULL,
            after REAL NOT NULL,
            step_size REAL NOT NULL,
            created_at TEXT NOT NULL,
            UNIQUE (memory, episode))""",
        "CREATE INDEX q_history_episode ON q_history (episode)",
        """CREATE TABLE calibrations (
            namespace TEXT PRIMARY KEY,
            intents INTEGER NOT NULL,
            mean REAL NOT NULL,
            std REAL NOT NULL,
            threshold REAL NOT NULL) WITHOUT ROWID""",
    ):
        connection.execute(statement)


def m002_checksums_and_counters(connection: SqliteConnection) -> None:
    """Checksums of texts and vectors, counters for `stats`, a place for vectors of a new model.

    The checksums of memories are those of a later step, which compare more.
    """
    for statement in (
        "ALTER TABLE intents ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE experiences ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE episodes ADD COLUMN held_checksum INTEGER",
        # Vectors of the model that `reembed` is going over to, by the digest of their text.
        "CREATE TABLE new_vectors (digest BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID",
    ):
        connection.execute(statement)
    connection.create_function("memrl_checksum", -1, checksum, deterministic=True)
    connection.execute("UPDATE intents SET checksum = memrl_checksum(namespace, vector)")
    connection.execute(
        "UPDATE episodes SET held_checksum = memrl_checksum(held_intent, held_trajectory, "
        "held_vector) WHERE held_intent IS NOT NULL"
    )
    connection.execute(
        "INSERT INTO meta (key, value) SELECT 'generation', 1 FROM meta WHERE key = 'probes'"
    )
    counters.create(connection)


def m003_experiments_and_expiry(connection: SqliteConnection) -> None:
    """Whether a recall was held back, by which chance; episodes that nobody waits for any more."""
    for statement in (
        "ALTER TABLE recalls ADD COLUMN holdout REAL NOT NULL DEFAULT 0",
        "ALTER TABLE recalls ADD COLUMN withheld TEXT NOT NULL DEFAULT ''",
        "CREATE INDEX recalls_holdout ON recalls (episode) WHERE holdout > 0",
    ):
        connection.execute(statement)
    counters.renew_triggers(connection)


def m004_writers(connection: SqliteConnection) -> None:
    """On whose behalf a memory was written; which ones a recall does not see."""
    for statement in (
        "ALTER TABLE memories ADD COLUMN writer TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE episodes ADD COLUMN held_writer TEXT NOT NULL DEFAULT ''",
        "DROP INDEX memories_disabled",
        "CREATE INDEX memories_hidden ON memories (namespace) "
        "WHERE disabled = 1 OR trust = 'untrusted'",
    ):
        connection.execute(statement)
    for (seq,) in connection.execute("SELECT seq FROM experiences").fetchall():
        seal(connection, seq)  # which compares the writer too from now on


MIGRATIONS = (
    m001_first_schema,
    m002_checksums_and_counters,
    m003_experiments_and_expiry,
    m004_writers,
)


def schema_version(connection: SqliteConnection) -> int:
    """The version recorded in the file; 0 for an empty one."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def check_format(connection: SqliteConnection, place: str) -> int:
    """The version recorded in a file; nothing is written.

    Raises:
        StoreVersionError: The file was written by a newer version.
        StoreCorruptError: The file is a SQLite database of something else.
    """
    connection.execute("BEGIN")  # one state, although another process may be making the bank
    application = int(connection.execute("PRAGMA application_id").fetchone()[0])
    tables = int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    version = schema_version(connection)
    connection.execute("COMMIT")
    if application != APPLICATION_ID and (version or tables):
        raise StoreCorruptError(
            f"{place} is a SQLite database, but not a memory bank; it was not touched: "
            "choose another folder"
        )
    if version > len(MIGRATIONS):
        raise StoreVersionError(
            f"{place} has format {version}, this version reads up to {len(MIGRATIONS)}; "
            "upgrade langchain-memrl (the file was not touched)"
        )
    return version


def check_readable(version: int, place: str) -> None:
    """Refuse to read a format that would have to be written anew first.

    Raises:
        StoreNotFoundError: There is no bank yet.
        StoreVersionError: The file was written by an older version.
    """
    if version == 0:
        raise StoreNotFoundError(f"{place} holds no memory bank yet")
    if version < len(MIGRATIONS):
        raise StoreVersionError(
            f"{place} has format {version}, this version reads {len(MIGRATIONS)}; open it once "
            "without read_only (memrl rebuild does) to bring it up to date"
        )


def migrate(connection: SqliteConnection) -> None:
    """Bring a checked database to the current schema, step by step."""
    version = schema_version(connection)
    while version < len(MIGRATIONS):
        connection.execute("BEGIN EXCLUSIVE")
        try:
            version = schema_version(connection)  # another process may have been faster
            if version < len(MIGRATIONS):
                MIGRATIONS[version](connection)
                version += 1
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {version}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # SQLite rolls back by itself where the disk is full
                connection.execute("ROLLBACK")
            raise
