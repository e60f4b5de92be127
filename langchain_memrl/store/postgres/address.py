"""Where a bank is: a connection string, and the schema of the database that holds it."""

import re
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from langchain_memrl.errors import ConfigError

DEFAULT_SCHEMA = "memrl"
SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")


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
    parts = urlsplit(location)
    options = parse_qsl(parts.query, keep_blank_values=True)
    schema = dict(options).get("schema", DEFAULT_SCHEMA)
    if not SCHEMA.fullmatch(schema) or schema.startswith("pg_"):
        raise ConfigError(
            f"the schema is {schema!r}; expected small letters, digits and underscores, at most "
            "63, not beginning with a digit or pg_"
        )
    query = urlencode([(name, value) for name, value in options if name != "schema"])
    conninfo = urlunsplit(parts._replace(query=query))
    try:
        known = conninfo_to_dict(conninfo)
    except psycopg.ProgrammingError:
        raise ConfigError(
            "the PostgreSQL location cannot be read; expected "
            "postgresql://user:password@host:5432/database, special characters percent-encoded"
        ) from None
    host = known.get("host") or known.get("hostaddr") or "localhost"
    port = f":{known['port']}" if known.get("port") else ""
    name = known.get("dbname") or known.get("user") or ""
    return Address(conninfo, schema, f"postgresql://{host}{port}/{name} (schema {schema})")
