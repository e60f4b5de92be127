"""What the SQL of a bank runs on: SQLite or PostgreSQL, with one text for both.

Every statement is written in what both understand, with `?` for bound values. Where they differ,
a connection says so through its `dialect`. A `+` before a column keeps SQLite from using that
column's index; it means nothing to PostgreSQL, whose connection leaves it out.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from langchain_memrl.errors import StoreError


class Cursor(Protocol):
    """What a statement gives."""

    @property
    def rowcount(self) -> int:
        """How many rows it changed."""

    @property
    def description(self) -> Any:
        """Its columns; the first part of each is the name."""

    def fetchone(self) -> Any:
        """The next row, or None."""

    def fetchall(self) -> list[Any]:
        """All rows."""

    def close(self) -> None:
        """Give up what was not read."""

    def __iter__(self) -> Iterator[Any]: ...


class Dialect(Protocol):
    """Where SQLite and PostgreSQL differ.

    Attributes:
        counts_changes: Whether intents carry the number of their change, for index files that are
            kept level with the rows.
    """

    counts_changes: bool

    def keep(self, value: Any) -> Any:
        """One of the bank's own values (text, whole number, bytes) as its column holds it."""

    def kept(self, value: Any) -> Any:
        """The value again."""


class Database(Protocol):
    """A connection, inside or outside a transaction."""

    @property
    def dialect(self) -> Dialect:
        """Where it differs from others."""

    def execute(self, sql: str, values: Sequence[Any] = ..., /) -> Cursor:
        """Run a statement."""

    def executemany(self, sql: str, values: Iterable[Sequence[Any]], /) -> Any:
        """Run a statement for each row of values."""

    def stream(self, sql: str, /) -> Cursor:
        """Read very many rows, a few at a time; inside `one_state` or `snapshot`."""


class Rows(Protocol):
    """The rows of a bank, and its transactions."""

    def read(self, *, doubted: bool = False) -> AbstractContextManager[Database]:
        """A connection for reading; `doubted`: even where its content is in doubt."""

    def write(self, *namespaces: str) -> AbstractContextManager[Database]:
        """One transaction that changes these namespaces; none named: the whole bank."""

    def one_state(self, *, doubted: bool = False) -> AbstractContextManager[Database]:
        """A connection that sees one state, whatever others commit meanwhile."""

    def snapshot(self) -> AbstractContextManager[Database]:
        """One state for a long read; other threads go on meanwhile."""

    def check_open(self) -> None:
        """Raise `StoreError` where it is closed, or was opened before a fork."""


def check_usable(place: str, process: int, *, closed: bool) -> None:
    """Refuse rows that are closed, or belong to the process that this one was forked from.

    Raises:
        StoreError: With what to do.
    """
    if os.getpid() != process:
        raise StoreError(
            f"the memory bank {place} was opened before this process was forked; "
            "open it again in the child"
        )
    if closed:
        raise StoreError(f"the memory bank {place} is closed; open it again")
