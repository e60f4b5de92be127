"""A bank on a PostgreSQL server, which any number of machines share."""

import weakref
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import numpy as np

from langchain_memrl.config import LearningConfig, TrustConfig
from langchain_memrl.errors import InputError, StoreCorruptError
from langchain_memrl.reports import Verification
from langchain_memrl.store import counters, inspection, reembedding, rows
from langchain_memrl.store.base import Progress
from langchain_memrl.store.database import Database
from langchain_memrl.store.embedded.local import LocalStore
from langchain_memrl.store.encoding import to_vector
from langchain_memrl.store.files import new_folder
from langchain_memrl.store.filter_sql import POSTGRES_FILTER
from langchain_memrl.store.intake import check_export
from langchain_memrl.store.postgres.address import parse_address
from langchain_memrl.store.postgres.graphs import Graphs
from langchain_memrl.store.postgres.nearest import PgVectors
from langchain_memrl.store.postgres.server import Server
from langchain_memrl.store.sql_store import SqlStore

R = TypeVar("R")


class PostgresStore(SqlStore):
    """`MemoryStore` in one schema of a database. Threads and processes may share it."""

    _filters = POSTGRES_FILTER

    def __init__(
        self,
        location: str,
        *,
        learning: LearningConfig | None = None,
        trust: TrustConfig | None = None,
        create: bool = True,
        read_only: bool = False,
        exact: bool = False,
        now: Callable[[], datetime] = rows.utc_now,
    ) -> None:
        """Open a bank, or make one.

        Args:
            location: `postgresql://user:password@host/database?schema=memrl`.
            learning: Settings for a new bank.
            trust: Its rules of trust.
            create: Whether a missing bank is made.
            read_only: Open without writing.
            exact: Whether large namespaces are searched exactly too.
            now: The clock.
        """
        self._now = now
        self._rows = self._server = Server(
            parse_address(location), create=create, read_only=read_only
        )
        self._graphs = Graphs(self._server, exact=exact)
        self._nearest = PgVectors(self._graphs)
        self._end = weakref.finalize(self, _close, self._server, self._graphs)
        if not read_only:
            self._prepare(learning or LearningConfig(), trust or TrustConfig(), None)

    def _commit(self, namespaces: Iterable[str], work: Callable[[Database], R]) -> R:
        with self._server.write(*namespaces) as db:
            return work(db)

    # --- upkeep ---------------------------------------------------------------------------------

    def backup(self, folder: Path, progress: Progress | None = None) -> None:
        """Copy the bank, as it is at this moment, into a new folder: an embedded bank."""
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(f"{folder} exists and is not empty; choose a new folder")
        with (
            new_folder(folder) as temporary,
            TemporaryDirectory(prefix=".memrl-", dir=temporary.parent) as place,
        ):
            file = Path(place) / "bank.jsonl"
            self.export_jsonl(file)
            copy = LocalStore(temporary)
            try:
                copy.import_jsonl(file, check_export(file), progress)
            finally:
                copy.close()

    def compact(self) -> None:
        """Free the space of forgotten rows. The server's log keeps them until it is recycled."""
        with self._server.write() as db:
            reembedding.drop_unused(db)
        with self._server.alone() as db:
            for (table,) in db.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = ? ORDER BY 1",
                (self._server.address.schema,),
            ).fetchall():
                db.execute(f'VACUUM (FULL, ANALYZE) "{table}"')

    def verify(self) -> Verification:
        """See `MemoryStore.verify`."""
        with self._server.one_state() as db:
            (memories,) = db.execute("SELECT count(*) FROM memories").fetchone()
            (intents,) = db.execute("SELECT count(*) FROM intents WHERE id > 0").fetchone()
            try:
                found = inspection.problems(db) or list(_bad_copies(db))
            except StoreCorruptError as error:
                found = [str(error)]
        return Verification(tuple(found), memories, intents)

    def rebuild_index(self) -> None:
        """See `MemoryStore.rebuild_index`."""
        with self._server.write() as db:
            counters.recount(db)
            self._exchanged(db)
        model = self.fingerprint()
        if model is not None:
            self._graphs.build_all(model.probes.shape[1])

    def _exchanged(self, db: Database) -> None:
        self._graphs.drop_all(db)
        db.execute("DELETE FROM intent_vectors")
        self._server.copy_vectors(db, ())

    def check_open(self) -> None:
        """See `MemoryStore.check_open`."""
        self._server.check_open()

    def close(self) -> None:
        """Close every connection. Idempotent."""
        self._end()


def _close(server: Server, graphs: Graphs) -> None:
    graphs.close()
    server.close()


def _bad_copies(db: Database) -> Iterator[str]:
    """Vectors that are searched, where they differ from those that are kept."""
    pairs = db.stream(
        "SELECT i.id, i.vector, v.embedding::real[], v.namespace = i.namespace FROM intents i "
        "LEFT JOIN intent_vectors v ON v.id = i.id WHERE i.id > 0"
    )
    for id, blob, copy, same in pairs:
        if copy is None or not same or not np.array_equal(to_vector(blob), np.float32(copy)):
            yield f"the vector index differs from intent {id}; call rebuild_index()"
