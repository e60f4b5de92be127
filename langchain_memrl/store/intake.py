"""What the lines of an export may hold. A file is checked as a whole before a row is taken over."""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, get_args

import numpy as np

from langchain_memrl.config import LearningConfig
from langchain_memrl.core.learning import q_step
from langchain_memrl.errors import InputError, StoreCorruptError
from langchain_memrl.inputs import check_metadata, check_name, check_text
from langchain_memrl.store.encoding import to_time, to_vector
from langchain_memrl.types import Outcome

Check = Callable[[Any], object]

UNIT_TOLERANCE = 1e-3
Q_TOLERANCE = 1e-9
CANDIDATE_NUMBERS = 8
"""A candidate is a row of numbers: the memory's, then those it was ranked by."""


def _require(condition: object, expected: str) -> None:
    if not condition:
        raise InputError(f"expected {expected}")


def _number(value: Any) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    _require(is_number and math.isfinite(value), "a finite number")


def _whole(value: Any) -> None:
    _require(isinstance(value, int) and value >= 0, "a whole number of at least 0")


def _flag(value: Any) -> None:
    _require(value in (0, 1), "0 or 1")


def _name(value: Any) -> None:
    check_name("it", value)


def _text(value: Any) -> None:
    check_text("it", value, blank=True)


def _bytes(value: Any) -> None:
    _require(isinstance(value, bytes), "bytes")


def _time(value: Any) -> None:
    _require(to_time(value).tzinfo is not None, "a time with its zone")


def _step_size(value: Any) -> None:
    _number(value)
    _require(0 <= value <= 1, "a number in [0, 1]")


def _one_of(*values: str) -> Check:
    return lambda value: _require(value in values, f"one of {values}")


def _or_none(check: Check) -> Check:
    return lambda value: None if value is None else check(value)


def _json(check: Check) -> Check:
    return lambda text: check(json.loads(text))


def _names(value: Any) -> None:
    _require(isinstance(value, list), "a list")
    for one in value:
        _name(one)


def _candidates(value: Any) -> None:
    _require(isinstance(value, list), "a list")
    for row in value:
        _require(isinstance(row, list) and len(row) == CANDIDATE_NUMBERS, "rows of 8 numbers")
        _whole(row[0])
        for number in row[1:]:
            _number(number)


def _object(value: Any) -> None:
    _require(isinstance(value, dict), "an object")


COLUMNS: Mapping[str, Mapping[str, Check]] = {
    "intents": {
        "id": _whole,
        "namespace": _name,
        "text": _text,
        "digest": _bytes,
        "vector": _bytes,
        "change": _whole,
    },
    "memories": {
        "seq": _whole,
        "id": _name,
        "namespace": _name,
        "intent_id": _whole,
        "q_init": _number,
        "q": _number,
        "updates": _whole,
        "selections": _whole,
        "disabled": _flag,
        "pinned": _flag,
        "outcome": _one_of(*get_args(Outcome)),
        "source": _name,
        "trust": _name,
        "created_at": _time,
        "text": _object,
    },
    "experiences": {
        "seq": _whole,
        "episode_id": _name,
        "parents": _json(_names),
        "derived_from": _json(_names),
        "updated_at": _time,
        "metadata": _json(check_metadata),
        "lesson": _text,
        "trajectory": _text,
    },
    "episodes": {
        "seq": _whole,
        "namespace": _name,
        "episode_id": _name,
        "held_intent": _or_none(_text),
        "held_trajectory": _or_none(_text),
        "held_vector": _or_none(_bytes),
        "created_at": _time,
    },
    "recalls": {
        "seq": _whole,
        "episode": _whole,
        "recall_id": _text,
        "digest": _bytes,
        "intent": _text,
        "memory_ids": _json(_names),
        "candidates": _json(_candidates),
        "settings": _json(_object),
        "similarity_max": _or_none(_number),
        "explored": _flag,
        "created_at": _time,
    },
    "ledger": {
        "namespace": _name,
        "episode_id": _name,
        "operation": _one_of("reinforce", "remember"),
        "reward": _or_none(_number),
        "skipped": _or_none(_json(_names)),
        "memory_id": _or_none(_name),
        "digest": _or_none(_bytes),
        "created_at": _time,
    },
    "q_history": {
        "seq": _whole,
        "memory": _whole,
        "episode": _whole,
        "reward": _number,
        "before": _number,
        "after": _number,
        "step_size": _step_size,
        "created_at": _time,
    },
    "calibrations": {
        "namespace": _name,
        "intents": _whole,
        "mean": _number,
        "std": _number,
        "threshold": _number,
    },
}


class Intake:
    """Checks the lines of one export, in order."""

    def __init__(self, learning: LearningConfig, dimension: int | None) -> None:
        self._learning = learning
        self._dimension = dimension
        self._known: dict[str, set[int]] = {"intents": set(), "memories": set(), "episodes": set()}
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
            self._known[kind].add(row["id"])
        elif kind == "memories":
            self._check_reference("intent_id", "intents", row)
            self._check_columns("experiences", row["text"])
            for name in ("q_init", "q"):
                _told(name, lambda name=name: self._learning.reward(row[name]))  # type: ignore[misc]
            self._known[kind].add(row["seq"])
            self._stated[row["seq"]] = (row["id"], row["q"])
            self._replayed[row["seq"]] = row["q_init"]
        elif kind == "episodes":
            if row["held_intent"] is not None:
                self._check_vector("held_vector", row)
            self._known[kind].add(row["seq"])
        elif kind == "recalls":
            self._check_reference("episode", "episodes", row)
        elif kind == "q_history":
            self._check_reference("memory", "memories", row)
            self._check_reference("episode", "episodes", row)
            q = self._replayed[row["memory"]]
            self._replayed[row["memory"]] = float(q_step(q, row["reward"], row["step_size"]))

    def finish(self) -> None:
        """Compare every Q with its history.

        Raises:
            InputError: They differ.
        """
        for seq, (id, q) in self._stated.items():
            if abs(q - self._replayed[seq]) > Q_TOLERANCE:
                raise InputError(
                    f"the export says that memory {id} has Q {q:g}, its history leads to "
                    f"{self._replayed[seq]:g}; nothing was taken over"
                )

    @staticmethod
    def _check_columns(kind: str, row: Mapping[str, Any]) -> None:
        unknown = row.keys() - COLUMNS[kind].keys() - {"kind"}
        if unknown:
            raise InputError(f"unknown fields {sorted(unknown)}")
        for name, check in COLUMNS[kind].items():
            if name not in row:
                raise InputError(f"{name} is missing")
            _told(name, lambda check=check, name=name: check(row[name]))  # type: ignore[misc]

    def _check_reference(self, name: str, kind: str, row: Mapping[str, Any]) -> None:
        if row[name] not in self._known[kind]:
            raise InputError(f"{name} names a row of {kind} that does not come before it")

    def _check_vector(self, name: str, row: Mapping[str, Any]) -> None:
        def check() -> None:
            vector = to_vector(row[name])
            _require(vector.size == self._dimension, f"a vector of {self._dimension} numbers")
            length = float(np.linalg.norm(vector.astype(np.float64)))
            _require(abs(length - 1) <= UNIT_TOLERANCE, "a vector of length 1")

        _told(name, check)


def _told(name: str, check: Callable[[], object]) -> None:
    """Run a check; what it says is said of the field.

    Raises:
        InputError: The check failed.
    """
    try:
        check()
    except (ValueError, TypeError, KeyError, StoreCorruptError) as error:
        raise InputError(f"{name}: {error}") from error
