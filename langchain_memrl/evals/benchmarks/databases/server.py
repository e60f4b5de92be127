"""A database server of one's own: on a socket in a temporary folder, gone with its owner."""

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple, Self
from urllib.parse import parse_qs, unquote, urlsplit

from langchain_memrl.errors import ConfigError, MemRLError
from langchain_memrl.evals.benchmarks.databases import keeper

NO_SERVER = (
    "no database server is installed here: apt-get install mariadb-server-core "
    "mariadb-client-core (Debian, Ubuntu; elsewhere MariaDB 10.6 or newer), or name a running one "
    "with --dsn mysql://user:password@host:port/"
)
NO_CLIENT = 'the database client is missing: pip install "langchain-memrl[bench-db]"'
SYSTEM_PATH = "/usr/sbin:/usr/local/sbin:/usr/local/bin:/opt/homebrew/bin"
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of one's own is made in it
ENOUGH = 2**30
"""Bytes free in memory for its files to be there: fifteen times faster than on a disk."""
LONGEST_SOCKET = 100
"""Characters; the path of a Unix socket may not be longer."""
START = 60.0
"""Seconds a server may take to start."""

# Nothing has to survive a crash, so nothing waits for the disk.
THROW_AWAY = (
    "--innodb-log-file-size=4M",
    "--innodb-buffer-pool-size=32M",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-doublewrite=0",
    "--innodb-flush-method=nosync",
)
# As MySQL 8, which the ground truth was made with: UTF-8, trailing blanks count.
LIKE_MYSQL = ("--character-set-server=utf8mb4", "--collation-server=utf8mb4_unicode_520_nopad_ci")


# An account `root` without a password: only who may enter the folder reaches the socket.
EMPTY = ("--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve")


class Address(NamedTuple):
    """Where a server is, and who asks.

    Attributes:
        user: An account that may create databases and accounts.
        password: Its password.
        host: The host; empty with a socket.
        port: The port.
        socket: The path of its Unix socket; empty for a connection over TCP.
    """

    user: str = "root"
    password: str = ""
    host: str = ""
    port: int = 3306
    socket: str = ""

    def __repr__(self) -> str:
        return f"Address({self.user!r} at {self.socket or self.host!r})"

    @classmethod
    def parse(cls, dsn: str) -> Self:
        """Read `mysql://user:password@host:port/`, or `mysql://user@/?unix_socket=PATH`.

        Raises:
            ConfigError: It is no such address; the password is not repeated.
        """
        try:
            parts = urlsplit(dsn)
            port = parts.port or 3306
        except ValueError:  # whose words may repeat the password
            raise ConfigError(
                "the database address cannot be read; expected mysql://user:password@host:port/, "
                "with %-codes for what is special in user and password"
            ) from None
        socket = parse_qs(parts.query).get("unix_socket", [""])[0]
        if parts.scheme not in ("mysql", "mariadb") or not (parts.hostname or socket):
            raise ConfigError(
                f"the database address begins with {parts.scheme or 'nothing'}://; expected "
                "mysql://user:password@host:port/ or mysql://user@/?unix_socket=PATH"
            )
        user, password = unquote(parts.username or "root"), unquote(parts.password or "")
        return cls(user, password, parts.hostname or "", port, socket)

    def connect(self, **options: Any) -> Any:
        """Open a connection; the options are those of `pymysql.connect`."""
        where: dict[str, Any] = (
            {"unix_socket": self.socket, "ssl_disabled": True}
            if self.socket
            else {"host": self.host, "port": self.port}
        )
        defaults = {"user": self.user, "password": self.password, "charset": "utf8mb4"}
        return client().connect(**(where | defaults | {"autocommit": True} | options))


def client() -> Any:
    """The package PyMySQL.

    Raises:
        ConfigError: It is not installed.
    """
    try:
        import pymysql
    except ImportError as error:
        raise ConfigError(NO_CLIENT) from error
    return pymysql


def find_program(name: str) -> str:
    """The path of one of the server's programs.

    Raises:
        ConfigError: It is not installed.
    """
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}")
    if found is None:
        raise ConfigError(NO_SERVER)
    return found


class PrivateServer:
    """A MariaDB server for as long as the `with` block lasts.

    It listens on a socket in a folder that nobody else may enter, and on no port. It stops when the
    block ends, and also when the process that started it is killed.

    Attributes:
        address: Where it is, inside the block.

    Raises:
        ConfigError: On entry, when the server or its client is not installed.
        MemRLError: On entry, when it does not start.
    """

    def __init__(self) -> None:
        self._keeper: subprocess.Popen[bytes] | None = None
        self._folder = Path()

    @property
    def address(self) -> Address:
        """Where it is."""
        return Address(socket=str(self._folder / "sock"))

    def __enter__(self) -> Self:
        """Make an empty server and wait until it answers."""
        client()
        install, server = find_program("mariadb-install-db"), find_program("mariadbd")
        self._folder = _folder()
        options = [
            "--no-defaults",
            f"--datadir={self._folder}/data",
            f"--user={_account()}",
            *THROW_AWAY,
            *LIKE_MYSQL,
        ]
        try:
            with (self._folder / "log").open("w+b") as log:
                self._start(
                    log,
                    [install, *options, *EMPTY],
                    [server, *options, "--skip-networking", f"--socket={self._folder}/sock"],
                )
                self._wait(log)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop it and remove its folder."""
        self._stop()

    def _start(self, log: BinaryIO, *commands: list[str]) -> None:
        """Hand both to the keeper, which outlives this process by a moment."""
        shutil.chown(self._folder, _account())
        self._keeper = subprocess.Popen(  # noqa: S603
            [sys.executable, keeper.__file__, str(self._folder)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        pipe = self._keeper.stdin
        if pipe is not None:
            pipe.write(json.dumps(commands).encode() + b"\n")
            pipe.flush()

    def _wait(self, log: BinaryIO) -> None:
        """Until it answers."""
        end = time.monotonic() + START
        while time.monotonic() < end:
            try:
                self.address.connect().close()
            except client().err.OperationalError:
                if self._keeper is not None and self._keeper.poll() is not None:
                    break
                time.sleep(0.05)
            else:
                return
        log.seek(0)
        lines = log.read().decode(errors="replace").splitlines()
        said = [line for line in lines if "error" in line.lower()] or lines[-3:]
        raise MemRLError(f"the database server did not start: {' '.join(said)[:500]}")

    def _stop(self) -> None:
        if self._keeper is not None and self._keeper.stdin is not None:
            self._keeper.stdin.close()
            self._keeper.wait()
            self._keeper = None
        shutil.rmtree(self._folder, ignore_errors=True)


def _folder() -> Path:
    roomy = (
        MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ENOUGH
    )
    folder = Path(tempfile.mkdtemp(prefix="memrl-db-", dir=MEMORY if roomy else None))
    if len(str(folder / "sock")) > LONGEST_SOCKET:
        folder.rmdir()
        raise ConfigError(f"{folder} is too long a path for a socket; set TMPDIR to a shorter one")
    return folder


def _account() -> str:
    """Who runs the server: never root where there is an account for it."""
    mine = pwd.getpwuid(os.getuid()).pw_name
    if os.getuid() == 0:
        for name in ("mysql", "mariadb"):
            try:
                return pwd.getpwnam(name).pw_name
            except KeyError:
                continue
    return mine
