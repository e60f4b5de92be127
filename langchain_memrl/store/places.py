"""Where a bank may be: in memory, in a folder, on a PostgreSQL server."""

import re
from importlib.util import find_spec
from pathlib import Path

from langchain_memrl.config import LearningConfig, TrustConfig
from langchain_memrl.errors import ConfigError
from langchain_memrl.inputs import is_blank
from langchain_memrl.store.contract import MemoryStore
from langchain_memrl.store.embedded.local import LocalStore

SERVERS = ("postgresql", "postgres")
SECRETS = re.compile(r"(\b[a-z][a-z0-9+]*:/{1,2})(?:[^\s]*@|(?=[^\s]*\bpassword=)[^\s]*)")
"""What may hold a password: what stands before `@`, or everything where there is an option."""
OPTIONS = re.compile(r"(\bpassword\s*=\s*)('[^']*'|\S+)")
EXPECTED = 'expected a folder, ":memory:" or postgresql://...'
LOOKS_LIKE_A_SERVER = re.compile(r"^postgres(ql)?:|\b(password|host|dbname|user)\s*=")
"""A misspelt connection string, whose password must not become the name of a folder."""


def is_server(location: str | Path) -> bool:
    """Whether a location is a connection string of PostgreSQL."""
    return str(location).split("://", 1)[0] in SERVERS and "://" in str(location)


def without_secrets(text: str) -> str:
    """A text in which no connection string shows who connects."""
    return OPTIONS.sub(r"\1...", SECRETS.sub(r"\1", text))


def open_store(
    location: str | Path,
    *,
    learning: LearningConfig | None,
    trust: TrustConfig | None,
    create: bool,
    read_only: bool,
    seed: int | None,
    exact: bool,
) -> MemoryStore:
    """Open the bank at a location, or make one. See `EpisodicMemory.open`.

    Raises:
        ConfigError: The location is unusable, or a package is missing.
    """
    text = str(location)
    if is_blank(text):
        raise ConfigError(f"location is blank; {EXPECTED}")
    if is_server(text):
        if find_spec("psycopg") is None:
            raise ConfigError(
                'PostgreSQL needs more packages: pip install "langchain-memrl[postgres]"'
            )
        from langchain_memrl.store.postgres.store import PostgresStore

        return PostgresStore(
            text, learning=learning, trust=trust, create=create, read_only=read_only, exact=exact
        )
    if LOOKS_LIKE_A_SERVER.search(text):
        raise ConfigError(f"the location is neither a folder nor a connection string; {EXPECTED}")
    if "://" in text:
        raise ConfigError(f"location starts with {text.split('://', 1)[0]}://; {EXPECTED}")
    return LocalStore(
        location,
        learning=learning,
        trust=trust,
        create=create,
        read_only=read_only,
        seed=seed,
        exact=exact,
    )
