"""How values stand in a row: vectors as bytes, lists as JSON, digests as keys, and checksums.

SQLite has no checksums: a flipped bit in a text or a vector comes back as if it had been written.
So rows that hold texts or vectors keep a CRC-32 of them, which is compared whenever they are read.
"""

import hashlib
import json
import zlib
from datetime import datetime
from typing import Any

import numpy as np

from langchain_memrl.errors import StoreCorruptError
from langchain_memrl.store.base import Vector

RESTORE = "call verify() to see the damage, and restore a backup"


def to_vector(blob: bytes) -> Vector:
    """A stored vector, shape (d,).

    Raises:
        StoreCorruptError: It is cut off.
    """
    if not isinstance(blob, bytes) or len(blob) % 4:
        raise StoreCorruptError(f"a stored vector is cut off; {RESTORE}")
    return np.frombuffer(blob, dtype="<f4").astype(np.float32, copy=False)


def to_blob(vector: Vector) -> bytes:
    """A vector as stored: little-endian float32."""
    return np.ascontiguousarray(vector, dtype="<f4").tobytes()


def digest(*parts: Any) -> bytes:
    """A short key of some texts: BLAKE2b, 16 bytes."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def checksum(*parts: Any) -> int:
    """CRC-32 of texts, bytes and numbers; None, the empty text and 0 differ."""
    shown = [len(part) if isinstance(part, bytes) else part for part in parts]
    result = zlib.crc32(repr(shown).encode())
    for part in parts:
        if isinstance(part, bytes):
            result = zlib.crc32(part, result)
    return result


def check(what: str, kept: int, *parts: Any) -> None:
    """Compare a row with the checksum kept in it.

    Raises:
        StoreCorruptError: They differ.
    """
    if checksum(*parts) != kept:
        raise StoreCorruptError(f"{what} does not fit its checksum; {RESTORE}")


def to_time(text: str) -> datetime:
    """A stored time, aware.

    Raises:
        StoreCorruptError: It is no time.
    """
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError) as error:
        raise StoreCorruptError(f"a stored time cannot be read ({error}); {RESTORE}") from error


def load(what: str, text: Any) -> Any:
    """A value stored as JSON.

    Raises:
        StoreCorruptError: It is no JSON.
    """
    try:
        return json.loads(text)
    except (TypeError, ValueError) as error:
        raise StoreCorruptError(f"{what} cannot be read ({error}); {RESTORE}") from error
