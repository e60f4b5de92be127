"""What the lines of an export may hold. A file is checked as a whole before a row is taken over."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from langchain_memrl.config import LearningConfig
from langchain_memrl.core.learning import q_step
from langchain_memrl.errors import InputError, StoreCorruptError
from langchain_memrl.store.base import Export, Progress
from langchain_memrl.store.encoding import digest, to_vector
from langchain_memrl.store.fields import COLUMNS, require
from langchain_memrl.store.jsonl import promised_lines, read_header, read_lines
from langchain_memrl.store.rows import DOCUMENTS

REPORT_EVERY = 2000
UNIT_TOLERANCE = 1e-3
Q_TOLERANCE = 1e-9


class Intake:
    """Checks the lines of one export, in order."""

    def __init__(self, learning: LearningConfig, dimension: int | None) -> None:
        self._learning = learning
        self._dimension = dimension
        self._spaces: dict[str, dict[int, str]] = {"intents": {}, "memories": {}, "episodes": {}}
        self._range = [learning.q_init]
        self._stated: dict[int, tuple[str, float]] = {}
        self._replayed: dict[int, float] = {}

    def check(self, row: Mapping[str, Any]) -> None:
        """Check one line, its values decoded.

        Raises:
            InputError: With the field and what was expected.
        """
        kind = str(row.get("kind"))
        if kind not in COLUMNS or kind == "experiences":
            raise InputError(f"the kind {kind!r} is unknown")
        self._check_columns(kind, row)
        if kind == "intents":
            self._check_vector("vector", row)
            _told("digest", lambda: require(digest(row["text"]) == row["digest"], "its digest"))
            self._spaces[kind][row["id"]] = row["namespace"]
        elif kind == "memories":
            if row["intent_id"] != DOCUMENTS:
                self._check_reference("intent_id", "intents", row, row["namespace"])
            self._check_columns("experiences", row["text"])
            _told("q", lambda: self._learning.reward(row["q"]))
            self._range = _spanned(self._range, row["q_init"])
            self._spaces[kind][row["seq"]] = row["namespace"]
            self._stated[row["seq"]] = (row["id"], row["q"])
            self._replayed[row["seq"]] = row["q_init"]
        elif kind == "episodes":
            if row["held_intent"] is not None:
                self._check_vector("held_vector", row)
            self._spaces[kind][row["seq"]] = row["namespace"]
        elif kind == "recalls":
            self._check_reference("episode", "episodes", row)
        elif kind == "q_history":
            self._check_reference("memory", "memories", row)
            space = self._spaces["memories"][row["memory"]]
            self._check_reference("episode", "episodes", row, space)
            self._range = _spanned(self._range, row["reward"])
            q = self._replayed[row["memory"]]
            self._replayed[row["memory"]] = float(q_step(q, row["reward"], row["step_size"]))

    def finish(self) -> tuple[float, float]:
        """Compare every Q with its history; the lowest and highest number that moved one.

        Raises:
            InputError: They differ.
        """
        for seq, (id, q) in self._stated.items():
            if abs(q - self._replayed[seq]) > Q_TOLERANCE:
                raise InputError(
                    f"the export says that memory {id} has Q {q:g}, its history leads to "
                    f"{self._replayed[seq]:g}; nothing was taken over"
                )
        return self._range[0], self._range[-1]

    @staticmethod
    def _check_columns(kind: str, row: Mapping[str, Any]) -> None:
        unknown = row.keys() - COLUMNS[kind].keys() - {"kind"}
        if unknown:
            raise InputError(f"unknown fields {sorted(unknown)}")
        for name, check in COLUMNS[kind].items():
            if name not in row:
                raise InputError(f"{name} is missing")
            _told(name, lambda check=check, name=name: check(row[name]))  # type: ignore[misc]

    def _check_reference(
        self, name: str, kind: str, row: Mapping[str, Any], namespace: str | None = None
    ) -> None:
        if row[name] not in self._spaces[kind]:
            raise InputError(f"{name} names a row of {kind} that does not come before it")
        if namespace not in (None, self._spaces[kind][row[name]]):
            raise InputError(f"{name} names a row of {kind} in another namespace")

    def _check_vector(self, name: str, row: Mapping[str, Any]) -> None:
        def check() -> None:
            vector = to_vector(row[name])
            require(vector.size == self._dimension, f"a vector of {self._dimension} numbers")
            length = float(np.linalg.norm(vector.astype(np.float64)))
            require(abs(length - 1) <= UNIT_TOLERANCE, "a vector of length 1")

        _told(name, check)


def _told(name: str, check: Callable[[], object]) -> None:
    """Run a check; what it says is said of the field.

    Raises:
        InputError: The check failed.
    """
    try:
        check()
    except (ValueError, TypeError, KeyError, ArithmeticError, StoreCorruptError) as error:
        raise InputError(f"{name}: {error}") from error


def _spanned(bounds: list[float], value: float) -> list[float]:
    """The lowest and the highest number so far."""
    return [min(bounds[0], value), max(bounds[-1], value)]


def check_export(path: Path, progress: Progress | None = None) -> Export:
    """Check a whole export before anything of it is taken over.

    Args:
        path: A file made by `export_jsonl`.
        progress: Called now and then with lines checked and twice their number, because the file
            is read once more by the import itself.

    Raises:
        InputError: The file is no complete export, or a line holds something unusable.
    """
    total = promised_lines(path)
    learning, trust, model = read_header(path)
    intake = Intake(learning, None if model is None else model.probes.shape[1])
    for done, _ in enumerate(read_lines(path, intake.check), start=2):
        if progress is not None and done % REPORT_EVERY == 0:
            progress(done, 2 * total)
    return Export(learning, model, total, *intake.finish(), trust)
