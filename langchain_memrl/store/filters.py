"""Filters over memories: checked, then turned into SQL in which every value is bound.

A filter is `{key: value}` or `{key: {operator: value}}`, several keys joined by AND, with `$and`
and `$or` over lists of filters. A missing value, or one of another type, never matches, except
for `$ne`, `$nin` and `{"$exists": False}`.
"""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from langchain_memrl.errors import InputError
from langchain_memrl.inputs import told
from langchain_memrl.store.filter_sql import (
    ALWAYS,
    NEVER,
    SQLITE_FILTER,
    Clause,
    FilterSql,
    is_number,
    is_plain,
    is_text,
)

MAX_DEPTH = 5
MAX_TERMS = 100
COMPARISONS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
OPERATORS = ("$eq", "$ne", *COMPARISONS, "$in", "$nin", "$exists")
COLUMNS = {
    **dict.fromkeys(("outcome", "source", "trust", "writer", "created_at"), "text"),
    "q_value": "number",
}
SEGMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


def compile_filter(
    filter: Mapping[str, Any] | None, syntax: FilterSql = SQLITE_FILTER
) -> Clause | None:
    """Check a filter and turn it into SQL; None and `{}` mean "everything".

    Raises:
        InputError: Unknown operator, bad key, unusable value, deeper than 5 or over 100 terms.
    """
    if filter is None or (isinstance(filter, Mapping) and not filter):
        return None
    return _Compiler(syntax).group(filter, 1)


class _Compiler:
    """Turns one filter into SQL."""

    def __init__(self, syntax: FilterSql) -> None:
        self._syntax = syntax
        self._terms = 0

    def group(self, filter: Any, depth: int) -> Clause:
        """A mapping of keys, all of which have to fit."""
        if not isinstance(filter, Mapping) or not filter:
            raise InputError(f"a filter is {type(filter).__name__}; expected a dict with keys")
        if depth > MAX_DEPTH:
            raise InputError(f"the filter is nested deeper than {MAX_DEPTH}")
        return _join("AND", [self._entry(key, value, depth) for key, value in filter.items()])

    def _entry(self, key: Any, value: Any, depth: int) -> Clause:
        if key in ("$and", "$or"):
            if not isinstance(value, Sequence) or isinstance(value, str) or not value:
                raise InputError(f"{key} needs a list of filters, got {type(value).__name__}")
            return _join(key[1:].upper(), [self.group(part, depth + 1) for part in value])
        if not isinstance(value, Mapping):
            return self._term(key, "$eq", value)
        if not value:
            raise InputError(
                f"the filter on {told(key)} is empty; expected an operator of {OPERATORS}"
            )
        return _join("AND", [self._term(key, operator, item) for operator, item in value.items()])

    def _term(self, key: Any, operator: Any, value: Any) -> Clause:
        self._terms += 1
        if self._terms > MAX_TERMS:
            raise InputError(f"the filter has more than {MAX_TERMS} terms")
        segments = key.split(".") if isinstance(key, str) else [""]
        if not all(SEGMENT.fullmatch(segment) for segment in segments):
            raise InputError(
                f"filter key {told(key)}; expected letters, digits and underscores, segments "
                "joined by '.'"
            )
        if operator not in OPERATORS:
            raise InputError(
                f"unknown operator {told(operator)} on {key!r}; expected one of {OPERATORS}"
            )
        clause = self._positive(key, segments, operator, value)
        negative = operator in ("$ne", "$nin") or (operator == "$exists" and not value)
        return Clause(f"({clause.sql} IS NOT TRUE)", clause.values) if negative else clause

    @staticmethod
    def _value(key: str, value: Any) -> Any:
        return _time(key, _scalar(key, value)) if key == "created_at" else _scalar(key, value)

    def _positive(self, key: str, segments: Sequence[str], operator: str, value: Any) -> Clause:
        """A term, without its negation."""
        if operator == "$exists":
            if not isinstance(value, bool):
                raise InputError(f"$exists on {key!r} needs True or False, got {told(value)}")
            return ALWAYS if key in COLUMNS else self._syntax.has(segments)
        if operator in ("$in", "$nin"):
            if not isinstance(value, Sequence) or isinstance(value, str):
                raise InputError(f"{operator} on {key!r} needs a list, got {type(value).__name__}")
            if len(value) > MAX_TERMS:
                raise InputError(f"{operator} on {key!r} has more than {MAX_TERMS} values")
            values = [self._value(key, item) for item in value]
            if key not in COLUMNS:
                return self._syntax.is_one_of(segments, values)
            return self._syntax.column_in(_name(key), [one for one in values if _fits(key, one)])
        sign, one = COMPARISONS.get(operator, "="), self._value(key, value)
        if key in COLUMNS:
            return Clause(f"{_name(key)} {sign} ?", (one,)) if _fits(key, one) else NEVER
        if is_plain(one):
            return self._syntax.compares(segments, sign, one)
        return self._syntax.is_one_of(segments, [one]) if sign == "=" else NEVER


def _join(word: str, parts: list[Clause]) -> Clause:
    sql = f" {word} ".join(part.sql for part in parts)
    return Clause(f"({sql})", tuple(value for part in parts for value in part.values))


def _name(key: str) -> str:
    """The column behind a key that every memory has."""
    return "m.q" if key == "q_value" else f"m.{key}"


def _fits(key: str, value: Any) -> bool:
    """Whether a value is of the column's type."""
    return is_number(value) if COLUMNS[key] == "number" else is_text(value)


def _time(key: str, value: Any) -> Any:
    """A time as the column holds it, of a datetime or of a text.

    Raises:
        InputError: The text is no time with a zone.
    """
    if not is_text(value):
        return value
    try:
        return _utc(datetime.fromisoformat(value))
    except (ValueError, OverflowError):
        raise InputError(
            f"the filter on {key!r} has {told(value)}; expected a datetime with a time zone, or "
            "its ISO text"
        ) from None


def _utc(moment: datetime) -> str:
    """A time as stored.

    Raises:
        ValueError: It has no time zone.
        OverflowError: It is before year 1 or after year 9999 there.
    """
    if moment.tzinfo is None:
        raise ValueError("no time zone")
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def _scalar(key: str, value: Any) -> Any:
    if isinstance(value, datetime):
        try:
            return _utc(value)
        except ValueError:
            raise InputError(f"the filter on {key!r} has a time without a time zone") from None
        except OverflowError:
            raise InputError(
                f"the filter on {key!r} has a time outside the years 1 to 9999"
            ) from None
    usable = value is None or isinstance(value, str | bool | int | float)
    if isinstance(value, float) and not math.isfinite(value):
        usable = False
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        usable = False
    if isinstance(value, str):
        usable = "\x00" not in value and _encodes(value)
    if not usable:
        raise InputError(
            f"the filter on {key!r} has an unusable {type(value).__name__}; "
            "expected a str, a finite 64-bit number, a bool, None or an aware datetime"
        )
    return value


def _encodes(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
