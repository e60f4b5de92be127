"""The life of an embedded bank: changing and forgetting memories, copies, exports, imports."""

import json
import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from langchain_memrl.errors import (
    EmbeddingMismatchError,
    InputError,
    MemoryNotFoundError,
    StoreCorruptError,
    StoreError,
)
from langchain_memrl.reports import Verification
from langchain_memrl.store import (
    changes,
    counters,
    inspection,
    ledger,
    meta,
    reembedding,
    revising,
)
from langchain_memrl.store.base import Export, Fingerprint, Progress, RewardEntry, Trial
from langchain_memrl.store.files import new_file, new_folder
from langchain_memrl.store.jsonl import read_lines
from langchain_memrl.store.sidecar import FILE_NAME, Sidecar
from langchain_memrl.store.transfer import Importer, count_rows, export_lines, in_batches
from langchain_memrl.store.trials import find_trials
from langchain_memrl.store.vectors import VectorCache
from langchain_memrl.types import Episode

BACKUP_PAGES = 2000


class Upkeep(ABC):
    """What `LocalStore` does besides the loop."""

    _sidecar: Sidecar
    _vectors: VectorCache

    @abstractmethod
    def _stamp(self, seconds: float = 0.0) -> str:
        """The time in so many seconds, as stored."""

    def update(self, namespace: str, id: str, changes_: Mapping[str, Any]) -> None:
        """See `MemoryStore.update`."""
        with self._sidecar.write() as db:
            if not changes.update(db, namespace, id, changes_, self._stamp()):
                raise MemoryNotFoundError(f"no memory {id!r} in namespace {namespace!r}")

    def family(self, namespace: str, ids: Sequence[str]) -> tuple[str, ...]:
        """See `MemoryStore.family`."""
        with self._sidecar.read() as db:
            return changes.family(db, namespace, ids)

    def forget(self, namespace: str, ids: Sequence[str]) -> None:
        """See `MemoryStore.forget`."""
        with self._sidecar.write() as db:
            changes.forget(db, namespace, ids)

    def mark(self, namespace: str, id: str, name: str, value: bool) -> None:
        """See `MemoryStore.mark`."""
        with self._sidecar.write() as db:
            if not changes.mark(db, namespace, id, name, value):
                raise MemoryNotFoundError(f"there is no memory {id!r} in namespace {namespace!r}")

    def useless(self, namespace: str, max_q: float, min_updates: int) -> tuple[str, ...]:
        """See `MemoryStore.useless`."""
        with self._sidecar.read() as db:
            return changes.useless(db, namespace, max_q, min_updates)

    def clear(self, namespace: str) -> None:
        """See `MemoryStore.clear`."""
        with self._sidecar.write() as db:
            changes.clear(db, namespace)

    def backup(self, folder: Path, progress: Progress | None = None) -> None:
        """Copy the bank, as it is at this moment, into a new folder; others may go on writing."""
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(f"{folder} exists and is not empty; choose a new folder")
        with new_folder(folder) as temporary:
            path = temporary / FILE_NAME
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            with self._sidecar.read() as db, closing(sqlite3.connect(path)) as copy:
                try:
                    db.backup(
                        copy,
                        pages=BACKUP_PAGES,
                        progress=progress
                        and (lambda _, left, total: progress(total - left, total)),
                    )
                except sqlite3.OperationalError as error:
                    raise StoreError(f"{folder} cannot be written ({error})") from error
            with path.open("rb+") as file:
                os.fsync(file.fileno())

    def export_jsonl(self, path: Path, progress: Progress | None = None) -> int:
        """Write the whole bank as JSON lines; the file appears only when it is complete."""
        with new_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
            with self._sidecar.snapshot() as db:
                total, done = count_rows(db) + 2, 0
                for line in export_lines(db, meta.learning(db), meta.fingerprint(db)):
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
            with self._sidecar.write() as db:
                importer.take(db, batch)
            done += len(batch)
            if progress is not None:
                progress(done, 2 * total)
        with self._sidecar.write() as db:
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
        with self._sidecar.write() as db:
            try:
                meta.claim_model(db, export.model)
            except EmbeddingMismatchError as error:
                raise EmbeddingMismatchError(f"{error}; or import into a new bank") from error
            if not db.execute("SELECT 1 FROM episodes LIMIT 1").fetchone():
                meta.save_learning(db, export.learning)
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
        with self._sidecar.write() as db:
            reembedding.begin(db, model)
            done, total = reembedding.count_texts(db)
        made, after, ready = 0, 0, False
        while not ready:
            with self._sidecar.read() as db:
                texts, after = reembedding.missing_texts(db, after)
            vectors = embed(texts) if texts else ()
            with self._sidecar.write() as db:
                if reembedding.is_done(db, model):
                    break
                reembedding.keep(db, texts, vectors)
                if not texts:
                    ready, after = reembedding.exchange(db), 0
                if ready:
                    self._vectors.rebuild(db)
                    self._vectors.save(db)
            made += len(texts)
            if progress is not None and texts:
                progress(done + made, max(total, done + made))
        return made

    def compact(self) -> None:
        """Free the space of forgotten rows and leave no trace of them in any file."""
        with self._sidecar.write() as db:
            reembedding.drop_unused(db)
        with self._sidecar.alone() as db:
            db.execute("VACUUM")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with self._sidecar.write() as db:
            self._vectors.rebuild(db)
            self._vectors.save(db)
        with self._sidecar.alone() as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    # --- episodes that wait ---------------------------------------------------------------------

    def open_episodes(
        self, namespace: str, older_than: float | None, limit: int | None
    ) -> list[Episode]:
        """See `MemoryStore.open_episodes`."""
        before = None if older_than is None else self._stamp(-older_than)
        with self._sidecar.read() as db:
            return revising.open_episodes(db, namespace, before, limit)

    def expire(
        self, namespace: str, older_than: float, entries: Callable[[str], RewardEntry]
    ) -> list[Episode]:
        """See `MemoryStore.expire`."""
        with self._sidecar.write() as db:
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
        with self._sidecar.read() as db:
            return find_trials(db, namespace, chosen=chosen)

    # --- checking -------------------------------------------------------------------------------

    def verify(self) -> Verification:
        """See `MemoryStore.verify`."""
        doubt = self._sidecar.doubt or self._sidecar.find_doubt(thorough=True)
        found = [doubt] if doubt else []
        memories = intents = 0
        try:
            with self._sidecar.one_state(doubted=True) as db:
                (memories,) = db.execute("SELECT count(*) FROM memories").fetchone()
                (intents,) = db.execute("SELECT count(*) FROM intents").fetchone()
                # An index cannot be better than the vectors it is made of.
                found += inspection.problems(db) or self._vectors.problems(db)
        except StoreCorruptError as error:
            found.append(str(error))
        return Verification(tuple(found), memories, intents)

    def rebuild_index(self) -> None:
        """See `MemoryStore.rebuild_index`."""
        with self._sidecar.write() as db:
            counters.recount(db)
            self._vectors.rebuild(db)
            self._vectors.save(db)
