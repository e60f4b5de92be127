"""Where a bank is: a connection string, and the schema of the database that holds it."""

import re
from typing import Any, NamedTuple
from urllib.parse import unquote

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from langchain_memrl.errors import ConfigError

DEFAULT_SCHEMA = "memrl"
SCHEMA_OPTION = "schema="
SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
DEFAULTS = {
    "application_name": "langchain-memrl",
    "connect_timeout": "10",
    # A server that vanished without a word is noticed within a minute.
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
"""What a connection string may say otherwise."""
UNREADABLE = (
    "the PostgreSQL location cannot be read; expected "
    "postgresql://user:password@host:5432/database?schema=memrl, special characters "
    "percent-encoded"
)


class Address(NamedTuple):
    """A place in PostgreSQL.

    Attributes:
        conninfo: What the driver connects with. It may hold a password: never shown.
        schema: The schema that holds the bank.
        place: How messages name it.
    """

    conninfo: str
    schema: str
    place: str

    def __repr__(self) -> str:
        return f"Address({self.place!r})"


def parse_address(location: str) -> Address:
    """Read `postgresql://...`; `?schema=name` chooses the schema, `memrl` by default.

    Raises:
        ConfigError: It is no connection string, or the schema's name is unusable.
    """
    start, _, query = location.partition("?")
    options = query.split("&") if query else []
    chosen = [part for part in options if part.startswith(SCHEMA_OPTION)]
    schema = unquote(chosen[-1].removeprefix(SCHEMA_OPTION)) if chosen else DEFAULT_SCHEMA
    if not SCHEMA.fullmatch(schema) or schema.startswith("pg_"):
        raise ConfigError(
            f"the schema is {schema!r}; expected small letters, digits and underscores, at most "
            "63, not beginning with a digit or pg_"
        )
    rest = "&".join(part for part in options if part not in chosen)
    try:
        known = conninfo_to_dict(f"{start}?{rest}" if rest else start)
    except psycopg.ProgrammingError:  # whose text may quote the password
        raise ConfigError(UNREADABLE) from None
    ports = str(known.get("port") or "0").split(",")
    places = f"{known.get('host') or ''}{known.get('dbname') or ''}"
    # A password that is not percent-encoded ends up in the names around it.
    if not all(port.isdecimal() and int(port) < 2**16 for port in ports) or "@" in places:
        raise ConfigError(UNREADABLE)
    settings: dict[str, Any] = {**DEFAULTS, **known, "client_encoding": "UTF8"}
    conninfo = make_conninfo(**settings)
    host = known.get("host") or known.get("hostaddr") or "localhost"
    port = f":{known['port']}" if known.get("port") else ""
    name = known.get("dbname") or known.get("user") or ""
    return Address(conninfo, schema, f"postgresql://{host}{port}/{name} (schema {schema})")
