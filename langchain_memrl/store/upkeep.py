"""The life of an embedded bank: changing and forgetting memories, copies, exports, imports."""

import json
import os
import shutil
import sqlite3
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from langchain_memrl.config import LearningConfig
from langchain_memrl.errors import (
    EmbeddingMismatchError,
    InputError,
    MemoryNotFoundError,
    StoreError,
)
from langchain_memrl.store import changes
from langchain_memrl.store.base import Fingerprint, Progress
from langchain_memrl.store.sidecar import FILE_NAME, Sidecar, make_folder, set_meta, sync_folder
from langchain_memrl.store.transfer import (
    Importer,
    Line,
    count_rows,
    export_lines,
    in_batches,
    read_header,
    same_model,
)
from langchain_memrl.store.vectors import VectorCache

BACKUP_PAGES = 2000


class Upkeep(ABC):
    """What `LocalStore` does besides the loop."""

    _sidecar: Sidecar
    _vectors: VectorCache

    @abstractmethod
    def _learning(self, db: sqlite3.Connection) -> LearningConfig:
        """The saved learning settings."""

    @abstractmethod
    def _fingerprint(self, db: sqlite3.Connection) -> Fingerprint | None:
        """The saved embedding model."""

    @abstractmethod
    def _stamp(self) -> str:
        """The time now, as stored."""

    @abstractmethod
    def save_fingerprint(self, fingerprint: Fingerprint) -> Fingerprint:
        """See `MemoryStore.save_fingerprint`."""

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

    def backup(self, folder: Path) -> None:
        """Copy the bank, as it is at this moment, into a new folder; others may go on writing."""
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(f"{folder} exists and is not empty; choose a new folder")
        with _new_folder(folder) as temporary:
            path = temporary / FILE_NAME
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            with self._sidecar.read() as db, closing(sqlite3.connect(path)) as copy:
                db.backup(copy, pages=BACKUP_PAGES)
            with path.open("rb+") as file:
                os.fsync(file.fileno())

    def export_jsonl(self, path: Path, progress: Progress | None = None) -> int:
        """Write the whole bank as JSON lines; the file appears only when it is complete."""
        with _new_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
            with self._sidecar.snapshot() as db:
                total, done = count_rows(db) + 2, 0
                for line in export_lines(db, self._learning(db), self._fingerprint(db)):
                    file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
                    done += 1
                    if progress is not None and (done % 1000 == 0 or done == total):
                        progress(done, total)
            file.flush()
            os.fsync(file.fileno())
        return done

    def import_jsonl(self, path: Path, progress: Progress | None = None) -> int:
        """Add what an export holds and this bank lacks, in batches; repeating it completes it."""
        total = _promised_lines(path)
        with path.open(encoding="utf-8") as file:
            learning, fingerprint = read_header(file.readline())
            self._adopt(learning, fingerprint)
            importer, done = Importer(), 1
            for batch in in_batches(_lines(file)):
                with self._sidecar.write() as db:
                    importer.take(db, self._learning(db), batch)
                done += len(batch)
                if progress is not None:
                    progress(done, total)
        with self._sidecar.write() as db:
            importer.finish(db)
        return done

    def _adopt(self, learning: LearningConfig, fingerprint: Fingerprint | None) -> None:
        """Take over the settings of a new bank; refuse vectors of another model."""
        with self._sidecar.write() as db:
            if not db.execute("SELECT 1 FROM episodes LIMIT 1").fetchone():
                set_meta(db, "learning", json.dumps(asdict(learning)))
        if fingerprint is None:
            return
        standing = self.save_fingerprint(fingerprint)
        if not same_model(standing, fingerprint):
            raise EmbeddingMismatchError(
                f"the export was made with {fingerprint.model}, this bank with {standing.model}; "
                "import into a new bank"
            )

    def compact(self) -> None:
        """Free the space of forgotten rows and leave no trace of them in any file."""
        with self._sidecar.alone() as db:
            db.execute("VACUUM")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with self._sidecar.write() as db:
            self._vectors.rebuild(db)
            self._vectors.save(db)
        with self._sidecar.alone() as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder that becomes `folder` when the block ends well, and vanishes otherwise."""
    temporary: Path | None = None
    try:
        make_folder(folder.parent)
        temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        yield temporary
        sync_folder(temporary)
        temporary.replace(folder)
        try:
            sync_folder(folder.parent)
        except OSError:
            folder.replace(temporary)
            raise
    except OSError as error:
        raise StoreError(f"{folder} cannot be written ({error})") from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def _new_file(path: Path) -> Iterator[Path]:
    """A temporary file that becomes `path` when the block ends well, and vanishes otherwise."""
    temporary: Path | None = None
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(descriptor)
        temporary = Path(name)
        yield temporary
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise StoreError(f"{path} cannot be written ({error})") from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def _promised_lines(path: Path) -> int:
    """How many lines a complete export has.

    Raises:
        InputError: There is no such file, or its end is missing.
    """
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 200))
            last: Any = json.loads(file.read().splitlines()[-1])
        if last["kind"] == "end":
            return int(last["lines"])
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error})") from error
    except (ValueError, KeyError, TypeError, IndexError):
        pass
    raise InputError(f"{path} is no complete export; make it again with export_jsonl")


def _lines(file: Any) -> Iterator[Line]:
    """The lines between the first and the last."""
    for text in file:
        line = json.loads(text, parse_constant=_refuse)
        if line["kind"] != "end":
            yield line


def _refuse(constant: str) -> None:
    raise InputError(f"the export holds {constant}; expected finite numbers")
