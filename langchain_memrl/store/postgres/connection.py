"""A connection to PostgreSQL that takes the statements of every bank."""

import itertools
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.postgres import types

from langchain_memrl.store.base import Vector
from langchain_memrl.store.database import Cursor

Connection = psycopg.Connection[tuple[Any, ...]]

HINT = re.compile(r"\+(?=(?:m\.)?namespace\b)")
STREAMED_ROWS = 500
NEW_INTENT = "INSERT INTO intents "
stream_numbers = itertools.count()
"""Several streams may be open on one connection, each under a name of its own."""


class PostgresDialect:
    """See `Dialect`. A column of PostgreSQL holds one type, so values carry theirs in front."""

    counts_changes = False

    def keep(self, value: Any) -> Any:
        """See `Dialect.keep`."""
        if isinstance(value, bytes):
            return f"b{value.hex()}"
        return f"i{value}" if isinstance(value, int) else f"s{value}"

    def kept(self, value: Any) -> Any:
        """See `Dialect.kept`."""
        kind, text = value[:1], value[1:]
        if kind == "b":
            return bytes.fromhex(text)
        return int(text) if kind == "i" else text


class BoolAsNumber(Dumper):
    """Marks are kept as 0 and 1, as in SQLite, which has no bool."""

    oid = types["int2"].oid

    def dump(self, obj: bool) -> Buffer:
        """The bool as PostgreSQL reads a number."""
        return b"1" if obj else b"0"


def numbers(vector: Vector) -> str:
    """A vector as pgvector reads it."""
    return f"[{','.join(map(str, vector.tolist()))}]"


@lru_cache(maxsize=512)
def translated_sql(sql: str) -> str:
    """A statement with this driver's placeholders, without SQLite's hints."""
    return HINT.sub("", sql.replace("%", "%%").replace("?", "%s"))


class PostgresConnection:
    """A `Database`."""

    dialect = PostgresDialect()

    def __init__(self, connection: Connection) -> None:
        self.raw = connection
        """The driver's own connection."""
        self.has_new_intents = False
        """Whether intents were added through it."""

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> Cursor:
        """See `Database.execute`."""
        self.has_new_intents |= sql.startswith(NEW_INTENT)
        return self.raw.execute(translated_sql(sql), values)

    def executemany(self, sql: str, values: Iterable[Sequence[Any]], /) -> None:
        """See `Database.executemany`."""
        self.has_new_intents |= sql.startswith(NEW_INTENT)
        with self.raw.cursor() as cursor:
            cursor.executemany(translated_sql(sql), values)

    def stream(self, sql: str, /) -> Cursor:
        """See `Database.stream`. It needs a transaction."""
        cursor = self.raw.cursor(name=f"stream_{next(stream_numbers)}")
        cursor.itersize = STREAMED_ROWS
        return cursor.execute(translated_sql(sql), ())
