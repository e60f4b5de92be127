"""A look behind a bank: the rows that its store keeps, whatever it keeps them in."""

import contextlib
import sqlite3
from pathlib import Path
from urllib.parse import parse_qs, urlsplit, urlunsplit

import psycopg
from psycopg import sql as names

from langchain_memrl.store.embedded.sidecar import FILE_NAME


class Behind:
    """The tables of the bank at a location, through a connection of its own."""

    def __init__(self, location):
        self._location = location

    def query(self, sql, values=()):
        """The rows that a statement gives."""
        with self._connect() as db:
            rows = db.execute(self._text(sql), values)
            return rows.fetchall() if rows.description else []

    def change(self, sql, values=()):
        """How many rows a statement changed."""
        with self._connect() as db:
            return db.execute(self._text(sql), values).rowcount

    def dump(self):
        """Every row of every table, as text."""
        if isinstance(self._location, Path):
            with self._connect() as db:
                return list(db.iterdump())
        tables = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1"
        return [
            f"{table} {row}"
            for (table,) in self.query(tables)
            for row in self.query(f'SELECT * FROM "{table}" ORDER BY 1')
        ]

    def exists(self):
        """Whether there is anything."""
        if isinstance(self._location, Path):
            return self._location.exists()
        return bool(self.query("SELECT current_schema() <> 'public'")[0][0])

    def raw(self):
        """Every byte of the bank's files; a server's log is its own."""
        if isinstance(self._location, Path):
            return b"".join(path.read_bytes() for path in sorted(self._location.iterdir()))
        self.query("CHECKPOINT")
        ((data,),) = self.query("SELECT current_setting('data_directory')")
        files = self.query(
            "SELECT pg_relation_filepath(o.oid) FROM pg_class c "
            "JOIN pg_class o ON o.oid IN (c.oid, c.reltoastrelid) "
            "WHERE c.relnamespace = to_regnamespace(current_schema()) "
            "AND pg_relation_filepath(o.oid) IS NOT NULL ORDER BY 1"
        )
        return b"".join((Path(data) / file).read_bytes() for (file,) in files)

    def _text(self, sql):
        return sql if isinstance(self._location, Path) else sql.replace("?", "%s")

    @contextlib.contextmanager
    def _connect(self):
        if isinstance(self._location, Path):
            with contextlib.closing(sqlite3.connect(self._location / FILE_NAME)) as db, db:
                yield db
            return
        parts = urlsplit(self._location)
        query = parse_qs(parts.query)
        (schema,) = query.pop("schema")
        address = urlunsplit(parts._replace(query=f"host={query['host'][0]}"))
        with psycopg.connect(address, autocommit=True) as db:
            db.execute(names.SQL("SET search_path TO {}, public").format(names.Identifier(schema)))
            yield db
