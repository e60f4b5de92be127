"""What every store does through SQL: the loop, and looking at what it left behind."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from langchain_memrl.config import LearningConfig, TrustConfig
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
from langchain_memrl.store.database import Database
from langchain_memrl.store.eviction import make_room
from langchain_memrl.store.filter_sql import ALWAYS, Clause
from langchain_memrl.store.filters import compile_filter
from langchain_memrl.store.pools import find_pool
from langchain_memrl.store.upkeep import Upkeep
from langchain_memrl.types import Episode, Memory, Reinforcement

R = TypeVar("R")

PAGE = 200
TEXTS = ("i.text", "e.lesson", "e.trajectory")
"""Where `search_text` looks."""


class SqlStore(Upkeep):
    """`MemoryStore` over rows; a subclass says where they are and how vectors are found."""

    def _prepare(self, learning: LearningConfig, trust: TrustConfig, seed: int | None) -> None:
        """Give a new bank its settings and its secret."""
        if not self._is_initialized():
            with self._rows.write() as db:
                meta.initialize(db, learning, trust, seed)

    def _is_initialized(self) -> bool:
        with self._rows.read(doubted=True) as db:
            return meta.is_initialized(db)

    # --- settings -------------------------------------------------------------------------------

    def learning(self) -> LearningConfig:
        """See `MemoryStore.learning`."""
        with self._rows.read(doubted=True) as db:
            return meta.learning(db)

    def trust(self) -> TrustConfig:
        """See `MemoryStore.trust`."""
        with self._rows.read(doubted=True) as db:
            return meta.trust_rules(db)

    def configure(self, changes: Mapping[str, Any]) -> LearningConfig:
        """See `MemoryStore.configure`."""
        with self._rows.write() as db:
            return meta.configure(db, changes)

    def secret(self) -> bytes:
        """See `MemoryStore.secret`."""
        with self._rows.read(doubted=True) as db:
            return meta.secret(db)

    def fingerprint(self) -> Fingerprint | None:
        """See `MemoryStore.fingerprint`."""
        with self._rows.read() as db:
            return meta.fingerprint(db)

    def namespaces(self) -> tuple[str, ...]:
        """See `MemoryStore.namespaces`."""
        sql = "SELECT namespace FROM counters WHERE memories > 0 OR episodes > 0 ORDER BY 1"
        with self._rows.read() as db:
            return tuple(row[0] for row in db.execute(sql))

    # --- recall ---------------------------------------------------------------------------------

    def intent_vectors(self, namespace: str, texts: Sequence[str]) -> dict[str, Vector]:
        """See `MemoryStore.intent_vectors`."""
        with self._rows.read() as db:
            found = {text: rows.find_intent(db, namespace, text) for text in texts}
        return {text: intent[1] for text, intent in found.items() if intent is not None}

    def is_empty(self, namespace: str) -> bool:
        """See `MemoryStore.is_empty`."""
        sql = "SELECT NOT EXISTS (SELECT 1 FROM intents WHERE namespace = ?)"
        with self._rows.read() as db:
            return bool(db.execute(sql, (namespace,)).fetchone()[0])

    def pools(self, queries: Sequence[PoolQuery], model: Fingerprint | None = None) -> list[Pool]:
        """See `MemoryStore.pools`."""
        clauses = [compile_filter(query.filter, self._filters) for query in queries]
        with self._rows.one_state() as db:
            meta.check_model(db, model)
            return [
                find_pool(db, self._nearest, query, clause)
                for query, clause in zip(queries, clauses, strict=True)
            ]

    def recorded(
        self, namespace: str, episode_id: str, intent: str, keys: Mapping[str, str] | None = None
    ) -> RecallRecord | None:
        """See `MemoryStore.recorded`."""
        with self._rows.read() as db:
            return recalls.find_record(db, namespace, episode_id, intent, keys)

    def record(self, records: Sequence[RecallRecord]) -> list[RecallRecord]:
        """See `MemoryStore.record`."""
        if not any(record.episode_id for record in records):
            return list(records)

        def work(db: Database) -> list[RecallRecord]:
            now = self._stamp()
            stands = [recalls.record(db, one, now) if one.episode_id else one for one in records]
            for one in stands:
                ledger.settle(db, one.namespace, one.episode_id, now, shown=one.memory_ids)
            return stands

        return self._commit({one.namespace for one in records}, work)

    # --- learning -------------------------------------------------------------------------------

    def reinforce(self, entries: Sequence[RewardEntry]) -> list[Reinforcement]:
        """See `MemoryStore.reinforce`."""

        def work(db: Database) -> list[Reinforcement]:
            learning, now = meta.learning(db), self._stamp()
            return [ledger.reinforce(db, entry, learning, now) for entry in entries]

        return self._commit({entry.namespace for entry in entries}, work)

    def remember(
        self,
        memories: Sequence[NewMemory],
        vectors: Sequence[Vector],
        model: Fingerprint | None = None,
    ) -> list[str]:
        """See `MemoryStore.remember`."""

        def work(db: Database) -> list[str]:
            meta.claim_model(db, model)
            learning, now = meta.learning(db), self._stamp()
            ids = [
                writing.remember(db, memory, vector, learning, now)
                for memory, vector in zip(memories, vectors, strict=True)
            ]
            for space in {memory.namespace for memory in memories}:
                make_room(db, space, ids)
            for memory in memories:
                ledger.settle(db, memory.namespace, memory.episode_id, now)
            return ids

        return self._commit({memory.namespace for memory in memories}, work)

    def hold(self, answer: HeldAnswer, vector: Vector, model: Fingerprint | None = None) -> None:
        """See `MemoryStore.hold`."""

        def work(db: Database) -> None:
            meta.claim_model(db, model)
            now = self._stamp()
            writing.hold(db, answer, vector, meta.learning(db), now)
            ledger.settle(db, answer.namespace, answer.episode_id, now, raw_id=answer.raw_id)

        self._commit({answer.namespace}, work)

    @abstractmethod
    def _commit(self, namespaces: Iterable[str], work: Callable[[Database], R]) -> R:
        """Run a call's work, which changes these namespaces, in a transaction."""

    # --- looking and changing -------------------------------------------------------------------

    def episode(self, namespace: str, episode_id: str) -> Episode | None:
        """See `MemoryStore.episode`."""
        with self._rows.read() as db:
            return rows.find_episode(db, namespace, episode_id)

    def memories(self, namespace: str, ids: Sequence[str]) -> dict[str, Memory]:
        """See `MemoryStore.memories`."""
        with self._rows.read() as db:
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
        clause = compile_filter(filter, self._filters) or ALWAYS
        if raw:
            clause = Clause(f"({clause.sql} AND e.lesson = '')", clause.values)
        return self._pages(namespace, clause, limit)

    def _pages(self, namespace: str, clause: Clause, limit: int | None) -> Iterator[Memory]:
        before, left = rows.EVERY, rows.EVERY if limit is None else limit
        while left > 0:
            with self._rows.read() as db:
                page, before = rows.page_of_memories(db, namespace, clause, before, min(PAGE, left))
            yield from page
            left -= len(page)
            if len(page) < PAGE:
                return

    def search_text(self, namespace: str, text: str, limit: int) -> list[Memory]:
        """See `MemoryStore.search_text`."""
        clause = Clause(
            " OR ".join(map(self._filters.contains, TEXTS)).join("()"), (text,) * len(TEXTS)
        )
        return list(self._pages(namespace, clause, limit))

    def history(self, namespace: str, id: str) -> list[QChange]:
        """See `MemoryStore.history`."""
        with self._rows.read() as db:
            return inspection.history(db, namespace, id)

    def stats(self, namespace: str) -> Stats:
        """See `MemoryStore.stats`."""
        with self._rows.read() as db:
            return counters.stats(db, namespace)
