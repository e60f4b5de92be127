"""Copies of a bank: backup, export, import; and a bank without what was forgotten."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
from langchain_core.embeddings import Embeddings

from langchain_memrl.core.probes import PROBES
from langchain_memrl.embedding import Embedder
from langchain_memrl.errors import InputError
from langchain_memrl.operations import Operations
from langchain_memrl.redaction import Redactor
from langchain_memrl.store.base import Fingerprint, Progress
from langchain_memrl.store.intake import check_export
from langchain_memrl.store.jsonl import Line, read_lines


class Copies(Operations):
    """Moving a whole bank."""

    def backup(self, folder: str | Path, *, progress: Progress | None = None) -> None:
        """Copy the live bank, as it is at this moment, into a new folder.

        Args:
            folder: Where the copy goes; it must not hold anything.
            progress: Called now and then with pages done and pages in all.

        Raises:
            InputError: The folder exists and is not empty.
            StoreError: It cannot be written; nothing is left behind.
        """
        self._whole().backup(Path(folder).expanduser(), progress)

    def export_jsonl(self, path: str | Path, *, progress: Progress | None = None) -> int:
        """Write the whole bank, every namespace, as JSON lines.

        The file appears only when it is complete. Nothing is lost: vectors, Q, history, episodes
        and ledger are all in it.

        Args:
            path: The file; an existing one is replaced.
            progress: Called now and then with lines done and lines in all.

        Returns:
            How many lines were written.
        """
        return self._whole().export_jsonl(Path(path).expanduser(), progress)

    @classmethod
    def import_jsonl(
        cls,
        path: str | Path,
        location: str | Path,
        *,
        embeddings: Embeddings | None = None,
        progress: Progress | None = None,
        **options: Any,
    ) -> Self:
        """Add what an export holds to the bank at `location`, which may be new.

        What is there already stays as it is, so repeating an interrupted import completes it, and
        two banks merge. A new bank takes the export's learning settings.

        Args:
            path: A file made by `export_jsonl`.
            location: As in `open`.
            embeddings: As in `open`; not called.
            progress: Called now and then with lines done and in all; every line counts twice,
                because the whole file is checked before anything of it is taken over.
            **options: As in `open`. With `redact` a file is refused that holds a text which it
                would change: its vectors were made from that text.

        Returns:
            The open bank.

        Raises:
            InputError: The file is no complete export, holds something unusable, or has rewards
                outside the bank's range; nothing was taken over.
            EmbeddingMismatchError: The bank's vectors are of another model.
        """
        file = Path(path).expanduser()
        export = check_export(file, progress)
        _check_redacted(file, Redactor(options.get("redact")))
        memory = cls.open(location, embeddings=embeddings, **options)
        try:
            memory._store.import_jsonl(file, export, progress)
        except BaseException:
            memory.close()
            raise
        return memory

    def reembed(self, embeddings: Embeddings, *, progress: Progress | None = None) -> int:
        """Go over to another embedding model: every task text gets a new vector.

        Q, history and texts stay. Until the last vector is there the bank works with the old
        model, and others may go on using it. After an interruption the same call goes on where it
        stopped. Others that have the bank open with the old model are refused from then on.

        Args:
            embeddings: The new model; this memory uses it afterwards.
            progress: Called now and then with texts done and texts in all.

        Returns:
            How many texts were embedded.

        Raises:
            EmbeddingError: The new model returned unusable vectors; the old ones stand.
        """
        store, new = self._whole(), Embedder(embeddings)
        model = Fingerprint(new.name, np.stack(new.embed(PROBES)))
        made = store.reembed(model, new.embed, progress)
        self.embedder.replace(embeddings)
        self._model.forget()
        return made

    def compact(self) -> None:
        """Free the space of what was forgotten; afterwards no file holds a trace of it."""
        self._whole().compact()


def _check_redacted(file: Path, redactor: Redactor) -> None:
    """Refuse an export with a text that `redact` would change.

    Raises:
        InputError: With the line; never with the text.
    """
    if not redactor.is_given:
        return
    for number, line in enumerate(read_lines(file), start=2):
        for name, value in _texts(line):
            if redactor.metadata(value) != value:
                raise InputError(
                    f"{file}, line {number}: redact would change its {name}; nothing was taken "
                    "over: export a bank that was filled with this redact, or import without it"
                )


def _texts(line: Line) -> Iterator[tuple[str, Any]]:
    """Every text of a checked line, with its name."""
    text = line.get("text")
    fields = text if isinstance(text, dict) else line
    for name in ("text", "lesson", "trajectory", "intent", "held_intent", "held_trajectory"):
        if isinstance(fields.get(name), str):
            yield name, fields[name]
    if "metadata" in fields:
        yield "metadata", json.loads(fields["metadata"])
