"""The embedded store: a SQLite sidecar that holds the truth, and vector indexes beside it."""

import logging
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from langchain_memrl.config import LearningConfig
from langchain_memrl.errors import StoreError, StoreNotFoundError
from langchain_memrl.reports import QChange, Stats
from langchain_memrl.store import counters, inspection, ledger, meta, recalls, rows, writing
from langchain_memrl.store.base import (
    Fingerprint,
    HeldAnswer,
    NewMemory,
    Pool,
    PoolQuery,
    RecallRecord,
    RewardEntry,
    Vector,
)
from langchain_memrl.store.commits import Commits
from langchain_memrl.store.connection import MEMORY, SqliteConnection
from langchain_memrl.store.filter_sql import ALWAYS, Clause
from langchain_memrl.store.filters import compile_filter
from langchain_memrl.store.pools import find_pool
from langchain_memrl.store.sidecar import Sidecar
from langchain_memrl.store.upkeep import Upkeep
from langchain_memrl.store.vectors import VectorCache
from langchain_memrl.types import Episode, Memory, Reinforcement

logger = logging.getLogger("langchain_memrl")

R = TypeVar("R")

PAGE = 200


class LocalStore(Upkeep):
    """`MemoryStore` in one folder, or in memory for `":memory:"`.

    Threads may share it; so may processes, each with its own.
    """

    def __init__(
        self,
        location: str | Path,
        *,
        learning: LearningConfig | None = None,
        create: bool = True,
        read_only: bool = False,
        seed: int | None = None,
        exact: bool = False,
        now: Callable[[], datetime] = rows.utc_now,
    ) -> None:
        """Open a bank, or make one.

        Args:
            location: A folder, or `":memory:"`.
            learning: Settings for a new bank.
            create: Whether a missing bank is made.
            read_only: Open without writing.
            seed: Makes the secret of a new in-memory bank repeatable.
            exact: Whether large namespaces are searched exactly too.
            now: The clock.
        """
        folder = None if str(location) == MEMORY else Path(location).expanduser()
        self._now = now
        self._sidecar = Sidecar(folder, create=create, read_only=read_only)
        self._commits = Commits(self._sidecar.write)
        self._vectors = VectorCache(folder, exact=exact)
        self._end = weakref.finalize(self, _close, self._sidecar, self._vectors)
        if not read_only:
            fixed = seed if folder is None else None
            self._initialize(learning or LearningConfig(), fixed)
        elif not self._is_initialized():
            self._sidecar.close()
            raise StoreNotFoundError(f"{self._sidecar.place} holds no memory bank yet")

    def _is_initialized(self) -> bool:
        with self._sidecar.read(doubted=True) as db:
            return meta.is_initialized(db)

    def _initialize(self, learning: LearningConfig, seed: int | None) -> None:
        if self._sidecar.doubt is not None or self._is_initialized():
            return
        with self._sidecar.write() as db:
            meta.initialize(db, learning, seed)

    # --- settings -------------------------------------------------------------------------------

    def learning(self) -> LearningConfig:
        """See `MemoryStore.learning`."""
        with self._sidecar.read(doubted=True) as db:
            return meta.learning(db)

    def configure(self, changes: Mapping[str, Any]) -> LearningConfig:
        """See `MemoryStore.configure`."""
        with self._sidecar.write() as db:
            return meta.configure(db, changes)

    def secret(self) -> bytes:
        """See `MemoryStore.secret`."""
        with self._sidecar.read(doubted=True) as db:
            return meta.secret(db)

    def fingerprint(self) -> Fingerprint | None:
        """See `MemoryStore.fingerprint`."""
        with self._sidecar.read() as db:
            return meta.fingerprint(db)

    def namespaces(self) -> tuple[str, ...]:
        """See `MemoryStore.namespaces`."""
        sql = "SELECT namespace FROM counters WHERE memories > 0 OR episodes > 0 ORDER BY 1"
        with self._sidecar.read() as db:
            return tuple(row[0] for row in db.execute(sql))

    # --- recall ---------------------------------------------------------------------------------

    def intent_vectors(self, namespace: str, texts: Sequence[str]) -> dict[str, Vector]:
        """See `MemoryStore.intent_vectors`."""
        with self._sidecar.read() as db:
            found = {text: rows.find_intent(db, namespace, text) for text in texts}
        return {text: intent[1] for text, intent in found.items() if intent is not None}

    def is_empty(self, namespace: str) -> bool:
        """See `MemoryStore.is_empty`."""
        sql = "SELECT NOT EXISTS (SELECT 1 FROM intents WHERE namespace = ?)"
        with self._sidecar.read() as db:
            return bool(db.execute(sql, (namespace,)).fetchone()[0])

    def pools(self, queries: Sequence[PoolQuery], model: Fingerprint | None = None) -> list[Pool]:
        """See `MemoryStore.pools`."""
        clauses = [compile_filter(query.filter) for query in queries]
        with self._sidecar.one_state() as db:
            meta.check_model(db, model)
            return [
                find_pool(db, self._vectors, query, clause)
                for query, clause in zip(queries, clauses, strict=True)
            ]

    def recorded(
        self, namespace: str, episode_id: str, intent: str, keys: Mapping[str, str] | None = None
    ) -> RecallRecord | None:
        """See `MemoryStore.recorded`."""
        with self._sidecar.read() as db:
            return recalls.find_record(db, namespace, episode_id, intent, keys)

    def record(self, records: Sequence[RecallRecord]) -> list[RecallRecord]:
        """See `MemoryStore.record`."""
        if not any(record.episode_id for record in records):
            return list(records)

        def work(db: SqliteConnection) -> list[RecallRecord]:
            now = self._stamp()
            stands = [recalls.record(db, one, now) if one.episode_id else one for one in records]
            for one in stands:
                ledger.settle(db, one.namespace, one.episode_id, now, shown=one.memory_ids)
            return stands

        return self._commit(work)

    # --- learning -------------------------------------------------------------------------------

    def reinforce(self, entries: Sequence[RewardEntry]) -> list[Reinforcement]:
        """See `MemoryStore.reinforce`."""

        def work(db: SqliteConnection) -> list[Reinforcement]:
            learning, now = meta.learning(db), self._stamp()
            return [ledger.reinforce(db, entry, learning, now) for entry in entries]

        return self._commit(work)

    def remember(
        self,
        memories: Sequence[NewMemory],
        vectors: Sequence[Vector],
        model: Fingerprint | None = None,
    ) -> list[str]:
        """See `MemoryStore.remember`."""

        def work(db: SqliteConnection) -> list[str]:
            meta.claim_model(db, model)
            learning, now = meta.learning(db), self._stamp()
            ids = [
                writing.remember(db, memory, vector, learning, now)
                for memory, vector in zip(memories, vectors, strict=True)
            ]
            for memory in memories:
                ledger.settle(db, memory.namespace, memory.episode_id, now)
            return ids

        return self._commit(work)

    def hold(self, answer: HeldAnswer, vector: Vector, model: Fingerprint | None = None) -> None:
        """See `MemoryStore.hold`."""

        def work(db: SqliteConnection) -> None:
            meta.claim_model(db, model)
            now = self._stamp()
            writing.hold(db, answer, vector, meta.learning(db), now)
            ledger.settle(db, answer.namespace, answer.episode_id, now, raw_id=answer.raw_id)

        self._commit(work)

    def _commit(self, work: Callable[[SqliteConnection], R]) -> R:
        """Run a call's work in a transaction that other threads' calls may share."""
        self._sidecar.check_open()
        return self._commits.run(work)

    def _stamp(self, seconds: float = 0.0) -> str:
        return rows.stamp(self._now() + timedelta(seconds=seconds))

    # --- looking and changing -------------------------------------------------------------------

    def episode(self, namespace: str, episode_id: str) -> Episode | None:
        """See `MemoryStore.episode`."""
        with self._sidecar.read() as db:
            return rows.find_episode(db, namespace, episode_id)

    def memories(self, namespace: str, ids: Sequence[str]) -> dict[str, Memory]:
        """See `MemoryStore.memories`."""
        with self._sidecar.read() as db:
            return rows.find_memories(db, namespace, ids)

    def scan(
        self,
        namespace: str,
        filter: Mapping[str, Any] | None = None,
        *,
        raw: bool = False,
        limit: int | None = None,
    ) -> Iterator[Memory]:
        """See `MemoryStore.scan`."""
        clause = compile_filter(filter) or ALWAYS
        if raw:
            clause = Clause(f"({clause.sql} AND e.lesson = '')", clause.values)
        return self._pages(namespace, clause, limit)

    def _pages(self, namespace: str, clause: Clause, limit: int | None) -> Iterator[Memory]:
        before, left = 2**62, 2**62 if limit is None else limit
        while left > 0:
            with self._sidecar.read() as db:
                page, before = rows.page_of_memories(db, namespace, clause, before, min(PAGE, left))
            yield from page
            left -= len(page)
            if len(page) < PAGE:
                return

    def search_text(self, namespace: str, text: str, limit: int) -> list[Memory]:
        """See `MemoryStore.search_text`."""
        clause = Clause(
            "(instr(lower(i.text), lower(?)) OR instr(lower(e.lesson), lower(?)) "
            "OR instr(lower(e.trajectory), lower(?)))",
            (text, text, text),
        )
        return list(self._pages(namespace, clause, limit))

    def history(self, namespace: str, id: str) -> list[QChange]:
        """See `MemoryStore.history`."""
        with self._sidecar.read() as db:
            return inspection.history(db, namespace, id)

    def stats(self, namespace: str) -> Stats:
        """See `MemoryStore.stats`."""
        with self._sidecar.read() as db:
            return counters.stats(db, namespace)

    def check_open(self) -> None:
        """See `MemoryStore.check_open`."""
        self._sidecar.check_open()

    def close(self) -> None:
        """Save the vector index and close the database. Idempotent.

        What nobody closed is closed when it is no longer used, at the latest when Python ends.
        """
        self._end()


def _close(sidecar: Sidecar, vectors: VectorCache) -> None:
    """Save what is worth it and close both; a forked child leaves its parent's files alone."""
    try:
        if sidecar.is_writable() and vectors.is_unsaved():
            with sidecar.write() as db:
                vectors.save(db)
    except (StoreError, OSError) as error:
        logger.warning("the vector index was not saved (%s); it will be rebuilt", error)
    finally:
        sidecar.close()
        vectors.close()
