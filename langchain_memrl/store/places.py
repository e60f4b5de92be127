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
SECRETS = re.compile(r"(\bpostgres(?:ql)?://)(?:[^\s/?]*@|(?=[^\s]*\bpassword=)[^\s]*)")
"""What may hold a password: what stands before `@`, or everything where there is an option."""
EXPECTED = 'expected a folder, ":memory:" or postgresql://...'


def is_server(location: str | Path) -> bool:
    """Whether a location is a connection string of PostgreSQL."""
    return str(location).split("://", 1)[0] in SERVERS and "://" in str(location)


def without_secrets(text: str) -> str:
    """A text in which no connection string shows who connects."""
    return SECRETS.sub(r"\1", text)


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
