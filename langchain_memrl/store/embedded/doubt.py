"""Whether a database is the one that was closed last."""

import sqlite3
from contextlib import closing
from pathlib import Path

from langchain_memrl.store.embedded.connection import connect
from langchain_memrl.store.embedded.marker import Marker


def find_doubt(marker: Marker, path: Path, seconds: float, *, thorough: bool = False) -> str | None:
    """Why it is not, with what to do; None where nothing speaks against it.

    Args:
        marker: What was said when it was closed.
        path: The database.
        seconds: How long to wait for a lock.
        thorough: Compare its whole content, whatever its size.
    """
    doubt, rows = marker.doubt(thorough=thorough), marker.rows_expected()
    if rows and not doubt:
        with closing(connect(path, seconds, read_only=True)) as db:
            doubt = "it is older" if rows_written(db) < rows else None
    return doubt and (
        f"{path} is not the database that was closed last: {doubt}; it was left as it is: "
        f"restore a backup, or delete {marker.path.name} if you put the database there yourself"
    )


def rows_written(db: sqlite3.Connection) -> int:
    """How many rows were ever written; it only grows."""
    return int(db.execute("SELECT coalesce(sum(seq), 0) FROM sqlite_sequence").fetchone()[0])
