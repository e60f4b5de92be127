"""What each field of an export may hold."""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, get_args

from langchain_memrl.errors import InputError
from langchain_memrl.inputs import check_metadata, check_name, check_text
from langchain_memrl.store.encoding import to_time
from langchain_memrl.store.revising import REVISED
from langchain_memrl.types import Outcome, Trust, Withheld

Check = Callable[[Any], object]

OPERATIONS = ("reinforce", "remember", "expire", "early")
COSINE_TOLERANCE = 1e-6
"""Cosines of float32 vectors may be so far above 1."""
CANDIDATE_NUMBERS = 8
"""A candidate is a row of numbers: the memory's, then those it was ranked by."""


def require(condition: object, expected: str) -> None:
    """Refuse what does not fulfil a condition.

    Raises:
        InputError: With what was expected.
    """
    if not condition:
        raise InputError(f"expected {expected}")


def _number(value: Any) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    require(is_number and math.isfinite(float(value)), "a finite number")


def _positive(value: Any) -> None:
    _number(value)
    require(value > 0, "a number above 0")


def _cosine(value: Any) -> None:
    _number(value)
    require(abs(value) <= 1 + COSINE_TOLERANCE, "a number in [-1, 1]")


def _whole(value: Any) -> None:
    require(type(value) is int and 0 <= value < 2**53, "a whole number from 0 to 2**53")


def _flag(value: Any) -> None:
    require(value in (0, 1), "0 or 1")


def _name(value: Any) -> None:
    check_name("it", value)


def _text(value: Any) -> None:
    check_text("it", value, blank=True)


def _bytes(value: Any) -> None:
    require(isinstance(value, bytes), "bytes")


def _time(value: Any) -> None:
    require(to_time(value).tzinfo is not None, "a time with its zone")


def _share(value: Any) -> None:
    _number(value)
    require(0 <= value <= 1, "a number in [0, 1]")


def _operation(value: Any) -> None:
    kind, _, number = value.partition(" ")
    known = (not number and kind in OPERATIONS) or (kind == REVISED and number.isdecimal())
    require(known, f"one of {OPERATIONS} or '{REVISED}' and a number")


def _one_of(*values: str) -> Check:
    return lambda value: require(value in values, f"one of {values}")


def _or_none(check: Check) -> Check:
    return lambda value: None if value is None else check(value)


def _or_empty(check: Check) -> Check:
    return lambda value: None if value == "" else check(value)


def _json(check: Check) -> Check:
    return lambda text: check(json.loads(text))


def _names(value: Any) -> None:
    require(isinstance(value, list), "a list")
    for one in value:
        _name(one)


def _candidates(value: Any) -> None:
    require(isinstance(value, list), "a list")
    for row in value:
        require(isinstance(row, list) and len(row) == CANDIDATE_NUMBERS, "rows of 8 numbers")
        _whole(row[0])
        for number in row[1:]:
            _number(number)


def _object(value: Any) -> None:
    require(isinstance(value, dict), "an object")


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
        "trust": _one_of(*get_args(Trust)),
        "writer": _or_empty(_name),
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
        "held_writer": _or_empty(_name),
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
        "holdout": _share,
        "withheld": _one_of(*get_args(Withheld)),
    },
    "ledger": {
        "namespace": _name,
        "episode_id": _name,
        "operation": _operation,
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
        "step_size": _share,
        "created_at": _time,
    },
    "calibrations": {
        "namespace": _name,
        "intents": _whole,
        "mean": _cosine,
        "std": _positive,
        "threshold": _cosine,
    },
}
