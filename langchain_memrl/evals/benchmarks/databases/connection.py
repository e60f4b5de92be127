"""One try's database: made fresh, open to an account that sees nothing else, dropped afterwards."""

import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from types import TracebackType
from typing import Any, Self

from langchain_memrl.errors import ConfigError, MemRLError
from langchain_memrl.evals.benchmarks.databases.server import Address, client
from langchain_memrl.evals.benchmarks.databases.tasks import Row, Table

LIMIT = 5.0
"""Seconds per statement."""
MOST_ROWS = 1000
"""Rows a statement may return."""
SLACK = 2.0
"""Seconds after which a statement that took its own limit away is killed."""
MODE = (
    "STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,"
    "NO_ENGINE_SUBSTITUTION"
)
STATE = (
    "SELECT MD5(GROUP_CONCAT(h ORDER BY h)) FROM"
    " (SELECT SUBSTRING(MD5(CONCAT_WS(',', {columns})), 1, 5) AS h FROM {table}) AS hashed"
)
"""The state of a table, as the benchmark takes it: the MD5 of the sorted beginnings of the MD5 of
each row, so that the order of the rows does not matter and their number does."""
GONE = (2003, 2006, 2013)
"""Codes of a connection that is not there any more."""
NO_SUCH_TABLE = (1146, 1054, 1049)
DENIED = (1044, 1045, 1227, 1410)


@dataclass(frozen=True, slots=True)
class Result:
    """What a statement gave.

    Attributes:
        rows: Its rows; None where it returns none.
        changed: How many rows it changed.
        error: What the server said against it; empty: nothing.
    """

    rows: tuple[Row, ...] | None = None
    changed: int = 0
    error: str = ""


class Database:
    """A fresh database with one table, for as long as the `with` block lasts.

    Every statement has a connection of its own, so that none can change the settings of the next.

    Args:
        address: The server.
        table: The table.
        limit: Seconds per statement.

    Raises:
        ConfigError: On entry, when the account may not create databases and accounts.
    """

    def __init__(self, address: Address, table: Table, *, limit: float = LIMIT) -> None:
        self._address = address
        self._table = table
        self._limit = limit
        self._name = f"memrl_{secrets.token_hex(8)}"
        self._account = Address(self._name, secrets.token_hex(16), *address[2:])

    def __enter__(self) -> Self:
        """Create the database, its table and its account."""
        try:
            self._create()
        except BaseException:
            self._drop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Drop both."""
        self._drop()

    def _create(self) -> None:
        columns = ", ".join(f"{_quoted(name)} {kind}" for name, kind in self._table.columns)
        marks = ", ".join(["%s"] * len(self._table.columns))
        table = f"{self._name}.{_quoted(self._table.name)}"
        with self._address.connect() as admin, admin.cursor() as cursor:
            try:
                cursor.execute(f"CREATE DATABASE {self._name}")
                account = self._account_here(cursor)
                cursor.execute(f"CREATE USER {account} IDENTIFIED BY '{self._account.password}'")
                cursor.execute(f"GRANT ALL ON {self._name}.* TO {account}")
            except client().err.Error as error:
                if error.args[0] not in DENIED:
                    raise
                raise ConfigError(
                    f"the account {self._address.user} may not create databases and accounts "
                    f"({error.args[1]}); every try needs one of its own"
                ) from error
            cursor.execute(f"CREATE TABLE {table} ({columns})")
            cursor.executemany(f"INSERT INTO {table} VALUES ({marks})", self._table.rows)

    def _drop(self) -> None:
        """Whatever of it is there."""
        errors = client().err
        with self._address.connect() as admin, admin.cursor() as cursor:
            account = self._account_here(cursor)
            for what in (f"DATABASE IF EXISTS {self._name}", f"USER IF EXISTS {account}"):
                with suppress(errors.OperationalError, errors.InternalError):
                    cursor.execute(f"DROP {what}")

    def _account_here(self, cursor: Any) -> str:
        """The account, for this machine only, by the name under which the server knows it."""
        cursor.execute("SELECT SUBSTRING_INDEX(USER(), '@', -1)")
        return f"{self._name}@'{cursor.fetchone()[0]}'"

    def run(self, statement: str) -> Result:
        """Run one statement as the try's own account.

        Raises:
            MemRLError: The server is gone; that is not the statement's fault.
        """
        errors = client().err
        try:
            connection = self._connect()
        except errors.OperationalError as error:
            if error.args[0] == 1049:  # the try dropped its own database
                return Result(error=_said(error))
            raise MemRLError(f"the database server is gone: {_said(error)}") from error
        try:
            with connection.cursor() as cursor:
                changed = cursor.execute(statement)
                rows = None if cursor.description is None else _plain(cursor.fetchall())
                return Result(rows, changed)
        except errors.Error as error:
            if error.args[0] not in GONE:
                return Result(error=_said(error))
            self._kill(connection.thread_id())
            return Result(error=f"stopped: no statement may take more than {self._limit:g} s")
        finally:
            with suppress(errors.Error):
                connection.close()

    def state(self) -> str:
        """The state of the table; empty where it is gone, or not what it was.

        Raises:
            MemRLError: The server is gone.
        """
        columns = ", ".join(map(_quoted, self._table.names))
        table = f"{self._name}.{_quoted(self._table.name)}"
        try:
            with self._address.connect() as admin, admin.cursor() as cursor:
                cursor.execute(STATE.format(columns=columns, table=table))
                return str(cursor.fetchone()[0])
        except client().err.Error as error:
            if error.args[0] in NO_SUCH_TABLE:
                return ""
            raise MemRLError(f"the state of the table cannot be read: {_said(error)}") from error

    def _connect(self) -> Any:
        connection = self._account.connect(
            database=self._name, read_timeout=self._limit + SLACK, connect_timeout=10
        )
        mariadb = "MariaDB" in connection.get_server_info()
        limit = (
            f"max_statement_time={self._limit:g}"
            if mariadb
            else f"max_execution_time={int(self._limit * 1000)}"
        )
        with connection.cursor() as cursor:
            cursor.execute(f"SET SESSION {limit}, sql_mode='{MODE}', sql_select_limit={MOST_ROWS}")
        return connection

    def _kill(self, thread: int) -> None:
        """End what a statement left running."""
        errors = client().err
        try:
            with self._address.connect() as admin, admin.cursor() as cursor, suppress(errors.Error):
                cursor.execute(f"KILL {int(thread)}")
        except errors.OperationalError as error:
            raise MemRLError(f"the database server is gone: {_said(error)}") from error


def server_version(address: Address) -> str:
    """What the server calls itself.

    Raises:
        ConfigError: There is none, or it refuses.
    """
    try:
        with address.connect(connect_timeout=10) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT VERSION()")
            return str(cursor.fetchone()[0])
    except client().err.Error as error:
        raise ConfigError(f"the database server does not answer: {_said(error)}") from error


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _said(error: Exception) -> str:
    return " ".join(str(part) for part in error.args)


def _plain(rows: Sequence[Sequence[Any]]) -> tuple[Row, ...]:
    return tuple(tuple(map(_value, row)) for row in rows)


def _value(value: Any) -> Any:
    """Numbers as numbers, everything else as text."""
    if isinstance(value, Decimal):
        return int(value) if value.as_tuple().exponent == 0 else float(value)
    if value is None or isinstance(value, int | float | str):
        return value
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
