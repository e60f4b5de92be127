"""The terms of a filter as SQL, for SQLite and for PostgreSQL. Every value is bound.

Both give the same answers: values of different types never match, a whole number equals the same
number with a point (up to 2**53, from where on not every whole number has one), texts are ordered
by their code points.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol


class Clause(NamedTuple):
    """A piece of SQL over `memories m` and `experiences e`, and its bound values."""

    sql: str
    values: tuple[Any, ...]


ALWAYS = Clause("1 = 1", ())
NEVER = Clause("1 = 0", ())


class FilterSql(Protocol):
    """What a term becomes."""

    def contains(self, column: str) -> str:
        """A text column contains the bound text; ASCII letters of either case are the same."""

    def column_in(self, name: str, values: Sequence[Any]) -> Clause:
        """A column holds one of some values of its own type."""

    def has(self, path: Sequence[str]) -> Clause:
        """The metadata have a value at a path, perhaps null."""

    def compares(self, path: Sequence[str], sign: str, value: str | float) -> Clause:
        """The value at a path is of this one's type and stands in this relation to it."""

    def is_one_of(self, path: Sequence[str], values: Sequence[Any]) -> Clause:
        """The value at a path equals one of these texts, numbers, bools or None."""


def is_text(value: Any) -> bool:
    """Whether a value is a text."""
    return isinstance(value, str)


def is_number(value: Any) -> bool:
    """Whether a value is a number; a bool is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_plain(value: Any) -> bool:
    """Whether a value has an order: a text or a number."""
    return is_text(value) or is_number(value)


class SqliteFilter:
    """Terms through SQLite's JSON functions."""

    _KIND = "json_type(e.metadata, ?)"
    _LISTED = "(SELECT value FROM json_each(?))"

    def contains(self, column: str) -> str:
        """See `FilterSql.contains`."""
        return f"instr(lower({column}), lower(?))"

    def column_in(self, name: str, values: Sequence[Any]) -> Clause:
        """See `FilterSql.column_in`."""
        return Clause(f"{name} IN {self._LISTED}", (self._listed(values),))

    def has(self, path: Sequence[str]) -> Clause:
        """See `FilterSql.has`."""
        return Clause(f"{self._KIND} IS NOT NULL", (self._path(path),))

    def compares(self, path: Sequence[str], sign: str, value: str | float) -> Clause:
        """See `FilterSql.compares`."""
        kinds = "('text')" if is_text(value) else "('integer', 'real')"
        place = self._path(path)
        return Clause(
            f"({self._KIND} IN {kinds} AND json_extract(e.metadata, ?) {sign} ?)",
            (place, place, value),
        )

    def is_one_of(self, path: Sequence[str], values: Sequence[Any]) -> Clause:
        """See `FilterSql.is_one_of`."""
        place = self._path(path)
        types = self._listed(self._type_name(one) for one in values if not is_plain(one))
        plain = self._listed(one for one in values if is_plain(one))
        return Clause(
            f"({self._KIND} IN {self._LISTED} OR ({self._KIND} IN ('text', 'integer', 'real') "
            f"AND json_extract(e.metadata, ?) IN {self._LISTED}))",
            (place, types, place, place, plain),
        )

    @staticmethod
    def _path(path: Sequence[str]) -> str:
        return "$" + "".join(f'."{segment}"' for segment in path)

    @staticmethod
    def _listed(values: Iterable[Any]) -> str:
        """One bound text, because SQLite is slow with thousands of bound values."""
        return json.dumps(list(values), ensure_ascii=False)

    @staticmethod
    def _type_name(value: Any) -> str:
        """SQLite's name for the JSON type of None, True and False."""
        return "null" if value is None else str(value).lower()


class PostgresFilter:
    """Terms through PostgreSQL's `jsonb`."""

    _VALUE = "(e.metadata::jsonb #> ?::text[])"

    def contains(self, column: str) -> str:
        """See `FilterSql.contains`."""
        return f"""strpos(lower({column}), lower(? COLLATE "C")) > 0"""

    def column_in(self, name: str, values: Sequence[Any]) -> Clause:
        """See `FilterSql.column_in`."""
        if name == "m.q":
            return Clause(f"{name} = ANY(?::float8[])", ([float(value) for value in values],))
        return Clause(f"{name} = ANY(?::text[])", (list(values),))

    def has(self, path: Sequence[str]) -> Clause:
        """See `FilterSql.has`."""
        return Clause(f"{self._VALUE} IS NOT NULL", (list(path),))

    def compares(self, path: Sequence[str], sign: str, value: str | float) -> Clause:
        """See `FilterSql.compares`."""
        place = list(path)
        if is_text(value):
            return Clause(
                f"(jsonb_typeof({self._VALUE}) = 'string' "
                f'AND (e.metadata::jsonb #>> ?::text[]) COLLATE "C" {sign} ?)',
                (place, place, value),
            )
        return Clause(
            f"(jsonb_typeof({self._VALUE}) = 'number' AND {self._VALUE} {sign} ?::jsonb)",
            (place, place, json.dumps(value)),
        )

    def is_one_of(self, path: Sequence[str], values: Sequence[Any]) -> Clause:
        """See `FilterSql.is_one_of`."""
        listed = [json.dumps(value, ensure_ascii=False) for value in values]
        return Clause(f"{self._VALUE} = ANY(?::text[]::jsonb[])", (list(path), listed))


SQLITE_FILTER = SqliteFilter()
POSTGRES_FILTER = PostgresFilter()
