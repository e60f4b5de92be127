"""Reading what a user downloaded: JSON, JSON lines, packed or not, with its SHA-256."""

import gzip
import hashlib
import json
import lzma
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from langchain_memrl.errors import InputError

UNPACK: Mapping[str, Callable[[bytes], bytes]] = {".xz": lzma.decompress, ".gz": gzip.decompress}


class Download(NamedTuple):
    """A file that was read.

    Attributes:
        content: What it holds; a list of objects where it holds JSON lines.
        sha256: Of the file as it lies there, in hexadecimal.
    """

    content: Any
    sha256: str


def read_download(file: Path, where: str) -> Download:
    """Read `.json` or `.jsonl`, also with `.xz` or `.gz` behind.

    Args:
        file: The file.
        where: Where it can be had, for the error.

    Raises:
        InputError: It cannot be read, or holds no JSON.
    """
    try:
        raw = file.read_bytes()
        plain = UNPACK.get(file.suffix, bytes)(raw)
        lines = ".jsonl" in file.suffixes
        content = list(map(json.loads, filter(None, plain.splitlines()))) if lines else None
        return Download(content if lines else json.loads(plain), digest(raw))
    except (OSError, ValueError, EOFError, lzma.LZMAError) as error:
        raise InputError(f"{file} cannot be read ({error}); {where}") from error


def digest(content: str | bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()
