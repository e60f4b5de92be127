"""The life of a bank: changing and forgetting memories, exports, imports, episodes that wait."""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from langchain_memrl.config import TrustConfig
from langchain_memrl.errors import EmbeddingMismatchError, InputError, MemoryNotFoundError
from langchain_memrl.store import changes, ledger, meta, quarantine, reembedding, revising, rows
from langchain_memrl.store.base import Export, Fingerprint, Progress, RewardEntry, Trial
from langchain_memrl.store.database import Database, Rows
from langchain_memrl.store.files import new_file
from langchain_memrl.store.filter_sql import SQLITE_FILTER, FilterSql
from langchain_memrl.store.jsonl import read_lines
from langchain_memrl.store.pools import Nearest
from langchain_memrl.store.transfer import Importer, count_rows, export_lines, in_batches
from langchain_memrl.store.trials import find_trials
from langchain_memrl.types import Episode

PATIENT_ENDS = 3
"""So often `reembed` comes to an end of the texts, before it makes others wait who add more."""


class Upkeep(ABC):
    """What a store does besides the loop."""

    _rows: Rows
    _nearest: Nearest
    _filters: FilterSql = SQLITE_FILTER
    _now: Callable[[], datetime]

    def _stamp(self, seconds: float = 0.0) -> str:
        """The time in so many seconds, as stored."""
        return rows.stamp(self._now() + timedelta(seconds=seconds))

    @abstractmethod
    def _exchanged(self, db: Database) -> None:
        """Every vector is another one now: make the index of them anew."""

    def update(self, namespace: str, id: str, changes_: Mapping[str, Any]) -> None:
        """See `MemoryStore.update`."""
        with self._rows.write(namespace) as db:
            if not changes.update(db, namespace, id, changes_, self._stamp()):
                raise MemoryNotFoundError(f"no memory {id!r} in namespace {namespace!r}")

    def family(self, namespace: str, ids: Sequence[str]) -> tuple[str, ...]:
        """See `MemoryStore.family`."""
        with self._rows.read() as db:
            return changes.family(db, namespace, ids)

    def forget(self, namespace: str, ids: Sequence[str]) -> None:
        """See `MemoryStore.forget`."""
        with self._rows.write(namespace) as db:
            changes.forget(db, namespace, ids)

    def mark(self, namespace: str, id: str, name: str, value: bool) -> None:
        """See `MemoryStore.mark`."""
        with self._rows.write(namespace) as db:
            if not changes.mark(db, namespace, id, name, value):
                raise MemoryNotFoundError(f"there is no memory {id!r} in namespace {namespace!r}")

    def release(self, namespace: str, id: str) -> None:
        """See `MemoryStore.release`."""
        with self._rows.write(namespace) as db:
            if not quarantine.release(db, namespace, id):
                raise MemoryNotFoundError(f"there is no memory {id!r} in namespace {namespace!r}")

    def useless(self, namespace: str, max_q: float, min_updates: int) -> tuple[str, ...]:
        """See `MemoryStore.useless`."""
        with self._rows.read() as db:
            return changes.useless(db, namespace, max_q, min_updates)

    def clear(self, namespace: str) -> None:
        """See `MemoryStore.clear`."""
        with self._rows.write(namespace) as db:
            changes.clear(db, namespace)

    def export_jsonl(self, path: Path, progress: Progress | None = None) -> int:
        """Write the whole bank as JSON lines; the file appears only when it is complete."""
        with new_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
            with self._rows.snapshot() as db:
                total, done = count_rows(db) + 2, 0
                for line in export_lines(db):
                    file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
                    done += 1
                    if progress is not None and (done % 1000 == 0 or done == total):
                        progress(done, total)
            file.flush()
            os.fsync(file.fileno())
        return done

    def import_jsonl(self, path: Path, export: Export, progress: Progress | None = None) -> int:
        """Add what a checked export holds and this bank lacks; repeating it completes it."""
        self._adopt(export)
        total = export.lines
        importer, done = Importer(), total
        for batch in in_batches(read_lines(path)):
            with self._rows.write() as db:
                importer.take(db, batch)
            done += len(batch)
            if progress is not None:
                progress(done, 2 * total)
        with self._rows.write() as db:
            importer.finish(db)
        if progress is not None:
            progress(2 * total, 2 * total)
        return total

    def _adopt(self, export: Export) -> None:
        """Take over the settings of a new bank; refuse what cannot be merged with this one.

        Raises:
            EmbeddingMismatchError: The vectors are of another model.
            InputError: The rewards are of another range.
        """
        with self._rows.write() as db:
            try:
                meta.claim_model(db, export.model)
            except EmbeddingMismatchError as error:
                raise EmbeddingMismatchError(f"{error}; or import into a new bank") from error
            if not db.execute("SELECT 1 FROM episodes LIMIT 1").fetchone():
                meta.save_learning(db, export.learning)
                if meta.trust_rules(db) == TrustConfig():  # else somebody chose these rules
                    meta.save_trust(db, export.trust)
                return
            low, high = meta.learning(db).reward_range
            if not low <= export.lowest <= export.highest <= high:
                raise InputError(
                    f"the export has rewards from {export.lowest:g} to {export.highest:g}, this "
                    f"bank's reward_range is ({low:g}, {high:g}): configure it first, or import "
                    "into a new bank; nothing was taken over"
                )

    def reembed(
        self,
        model: Fingerprint,
        embed: reembedding.Embed,
        progress: Progress | None = None,
    ) -> int:
        """Replace every vector by one of `model`; how many were made. Repeating it goes on."""
        with self._rows.write() as db:
            reembedding.begin(db, model)
            done, total = reembedding.count_texts(db)
        made, after, ready, ends = 0, 0, False, 0
        while not ready:
            with self._rows.read() as db:
                texts, after = reembedding.missing_texts(db, after)
            vectors = embed(texts) if texts else ()
            with self._rows.write() as db:
                if reembedding.is_done(db, model):
                    break
                reembedding.keep(db, texts, vectors)
                ends += len(texts) < reembedding.BATCH
                if ends > PATIENT_ENDS:  # others write faster than this loop comes to an end
                    made += reembedding.complete(db, embed)
                if not texts or ends > PATIENT_ENDS:
                    ready, after = reembedding.exchange(db), 0
                if ready:
                    self._exchanged(db)
            made += len(texts)
            if progress is not None and texts:
                progress(done + made, max(total, done + made))
        return made

    # --- episodes that wait ---------------------------------------------------------------------

    def open_episodes(
        self, namespace: str, older_than: float | None, limit: int | None
    ) -> list[Episode]:
        """See `MemoryStore.open_episodes`."""
        before = None if older_than is None else self._stamp(-older_than)
        with self._rows.read() as db:
            return revising.open_episodes(db, namespace, before, limit)

    def expire(
        self, namespace: str, older_than: float, entries: Callable[[str], RewardEntry]
    ) -> list[Episode]:
        """See `MemoryStore.expire`."""
        with self._rows.write(namespace) as db:
            now, before = self._stamp(), self._stamp(-older_than)
            found = revising.open_episodes(db, namespace, before, None)
            rewards = [entries(episode.episode_id) for episode in found]
            learning = meta.learning(db)
            for entry in rewards:
                ledger.reinforce(db, entry, learning, now)
            gone = [entry.episode_id for entry in rewards if entry.reward is None]
            revising.expire(db, namespace, gone, now)
        return found

    def trials(self, namespace: str, *, chosen: bool) -> list[Trial]:
        """See `MemoryStore.trials`."""
        with self._rows.read() as db:
            return find_trials(db, namespace, chosen=chosen)
