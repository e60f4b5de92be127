"""Filters over memories: checked, then turned into SQL in which every value is bound.

A filter is `{key: value}` or `{key: {operator: value}}`, several keys joined by AND, with `$and`
and `$or` over lists of filters. A missing value, or one of another type, never matches, except
for `$ne`, `$nin` and `{"$exists": False}`.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from langchain_memrl.errors import InputError

MAX_DEPTH = 5
MAX_TERMS = 100
COMPARISONS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
OPERATORS = ("$eq", "$ne", *COMPARISONS, "$in", "$nin", "$exists")
COLUMNS = {"outcome": "text", "source": "text", "created_at": "text", "q_value": "number"}
LISTED = "(SELECT value FROM json_each(?))"
SEGMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


class Clause(NamedTuple):
    """A piece of SQL over `memories m` and `experiences e`, and its bound values."""

    sql: str
    values: tuple[Any, ...]


def compile_filter(filter: Mapping[str, Any] | None) -> Clause | None:
    """Check a filter and turn it into SQL; None and `{}` mean "everything".

    Raises:
        InputError: Unknown operator, bad key, unusable value, deeper than 5 or over 100 terms.
    """
    if filter is None or (isinstance(filter, Mapping) and not filter):
        return None
    terms: list[str] = []
    return _group(filter, 1, terms)


def _group(filter: Any, depth: int, terms: list[str]) -> Clause:
    if not isinstance(filter, Mapping) or not filter:
        raise InputError(f"a filter is {type(filter).__name__}; expected a dict with keys")
    if depth > MAX_DEPTH:
        raise InputError(f"the filter is nested deeper than {MAX_DEPTH}")
    return _join("AND", [_entry(key, value, depth, terms) for key, value in filter.items()])


def _entry(key: Any, value: Any, depth: int, terms: list[str]) -> Clause:
    if key in ("$and", "$or"):
        if not isinstance(value, Sequence) or isinstance(value, str) or not value:
            raise InputError(f"{key} needs a list of filters, got {type(value).__name__}")
        return _join(key[1:].upper(), [_group(part, depth + 1, terms) for part in value])
    if not isinstance(value, Mapping):
        return _term(key, "$eq", value, terms)
    if not value:
        raise InputError(f"the filter on {key!r} is empty; expected an operator of {OPERATORS}")
    return _join("AND", [_term(key, operator, item, terms) for operator, item in value.items()])


def _join(word: str, parts: list[Clause]) -> Clause:
    sql = f" {word} ".join(part.sql for part in parts)
    return Clause(f"({sql})", tuple(value for part in parts for value in part.values))


def _term(key: Any, operator: Any, value: Any, terms: list[str]) -> Clause:
    terms.append(str(operator))
    if len(terms) > MAX_TERMS:
        raise InputError(f"the filter has more than {MAX_TERMS} terms")
    if operator not in OPERATORS:
        raise InputError(f"unknown operator {operator!r} on {key!r}; expected one of {OPERATORS}")
    segments = key.split(".") if isinstance(key, str) else [""]
    if not all(SEGMENT.fullmatch(segment) for segment in segments):
        raise InputError(
            f"filter key {key!r}; expected letters, digits and underscores, segments joined by '.'"
        )
    field = _column(key) if key in COLUMNS else _json_field(segments)
    if operator == "$exists":
        if not isinstance(value, bool):
            raise InputError(f"$exists on {key!r} needs True or False, got {value!r}")
        return field(None, "exists") if value else _negate(field(None, "exists"))
    if operator in ("$in", "$nin"):
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise InputError(f"{operator} on {key!r} needs a list, got {type(value).__name__}")
        if len(value) > MAX_TERMS:
            raise InputError(f"{operator} on {key!r} has more than {MAX_TERMS} values")
        clause = field([_scalar(key, item) for item in value], "in")
    else:
        sign = COMPARISONS.get(operator, "=")
        clause = field(_scalar(key, value), sign)
    return _negate(clause) if operator in ("$ne", "$nin") else clause


def _negate(clause: Clause) -> Clause:
    return Clause(f"(NOT coalesce({clause.sql}, 0))", clause.values)


def _scalar(key: str, value: Any) -> Any:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise InputError(f"the filter on {key!r} has a time without a time zone")
        return value.astimezone(UTC).isoformat(timespec="microseconds")
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


def _column(key: str) -> Callable[[Any, str], Clause]:
    """A term over one of the columns every memory has."""
    name = "m.q" if key == "q_value" else f"m.{key}"
    fits = _is_number if COLUMNS[key] == "number" else _is_text

    def term(value: Any, sign: str) -> Clause:
        if sign == "exists":
            return Clause("1", ())
        if sign == "in":
            return Clause(f"{name} IN {LISTED}", (_listed(filter(fits, value)),))
        return Clause(f"{name} {sign} ?", (value,)) if fits(value) else Clause("0", ())

    return term


def _listed(values: Iterable[Any]) -> str:
    """Values for `LISTED`; one bound text, because SQLite is slow with thousands of them."""
    return json.dumps(list(values), ensure_ascii=False)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_plain(value: Any) -> bool:
    return _is_text(value) or _is_number(value)


def _type_name(value: Any) -> str:
    """SQLite's name for the JSON type of None, True and False."""
    return "null" if value is None else str(value).lower()


def _json_field(segments: list[str]) -> Callable[[Any, str], Clause]:
    """A term over a metadata value; types never match across."""
    path = "$" + "".join(f'."{segment}"' for segment in segments)
    kind = "json_type(e.metadata, ?)"

    def term(value: Any, sign: str) -> Clause:
        if sign == "exists":
            return Clause(f"{kind} IS NOT NULL", (path,))
        if sign == "in":
            types = _listed(_type_name(one) for one in value if not _is_plain(one))
            plain = _listed(one for one in value if _is_plain(one))
            return Clause(
                f"({kind} IN {LISTED} OR ({kind} IN ('text', 'integer', 'real') "
                f"AND json_extract(e.metadata, ?) IN {LISTED}))",
                (path, types, path, path, plain),
            )
        if not _is_plain(value):
            fits = Clause(f"{kind} = ?", (path, _type_name(value)))
            return fits if sign == "=" else Clause("0", ())
        kinds = "('text')" if _is_text(value) else "('integer', 'real')"
        return Clause(
            f"({kind} IN {kinds} AND json_extract(e.metadata, ?) {sign} ?)", (path, path, value)
        )

    return term
