"""The file of an export: a line that describes the bank, one per row, and one that counts them."""

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from langchain_memrl.config import LearningConfig, TrustConfig
from langchain_memrl.errors import InputError, StoreCorruptError
from langchain_memrl.store.base import Fingerprint
from langchain_memrl.store.encoding import to_vector

FORMAT = 1

Line = dict[str, Any]

LATER: Mapping[Any, Line] = {
    "memories": {"writer": ""},
    "episodes": {"held_writer": ""},
    "recalls": {"holdout": 0.0, "withheld": ""},
}
"""What exports of earlier versions do not say."""


def encode(value: Any) -> Any:
    """A column as JSON can carry it."""
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def decode(value: Any) -> Any:
    """The column again."""
    encoded = isinstance(value, dict) and value.keys() == {"base64"}
    return base64.b64decode(value["base64"], validate=True) if encoded else value


def promised_lines(path: Path) -> int:
    """How many lines a complete export has.

    Raises:
        InputError: There is no such file, or its end is missing.
    """
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 200))
            last: Any = json.loads(file.read().splitlines()[-1])
        if last["kind"] == "end":
            return int(last["lines"])
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error})") from error
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        pass
    raise InputError(f"{path} is no complete export; make it again with export_jsonl")


def read_header(path: Path) -> tuple[LearningConfig, TrustConfig, Fingerprint | None]:
    """What the first line says: the bank's settings and its embedding model.

    Raises:
        InputError: The file is no export, or one of another format.
    """
    try:
        with path.open(encoding="utf-8") as file:
            header = json.loads(file.readline())
        if header["kind"] != "bank" or header["format"] != FORMAT:
            raise InputError(f"it is an export of format {header['format']!r}")
        learning = LearningConfig(**header["learning"])
        trust = TrustConfig(**header.get("trust", {}))
        if "probes" not in header:
            return learning, trust, None
        probes = to_vector(decode(header["probes"])).reshape(-1, header["dimension"])
        return learning, trust, Fingerprint(str(header["model"]), probes)
    except (ValueError, KeyError, TypeError, RecursionError, StoreCorruptError) as error:
        raise InputError(
            f"{path} is no export of a memory bank ({error}); expected one made by export_jsonl"
        ) from error


def read_lines(path: Path, check: Callable[[Line], object] | None = None) -> Iterator[Line]:
    """The rows of an export, checked on the way.

    Raises:
        InputError: A line cannot be read, or `check` refuses it; with its number.
    """
    with path.open(encoding="utf-8") as file:
        next(file)
        for number, text in enumerate(file, start=2):
            try:
                line = json.loads(text, parse_constant=_refuse)
                line = LATER.get(line.get("kind"), {}) | {
                    name: decode(value) for name, value in line.items()
                }
                if line.get("kind") == "end":
                    _check_end(line, number, file)
                    return
                if check is not None:
                    check(line)
            except (ValueError, TypeError, AttributeError, RecursionError) as error:
                raise InputError(
                    f"{path}, line {number}: {error}; nothing was taken over"
                ) from error
            yield line


def _check_end(line: Line, number: int, rest: Iterator[str]) -> None:
    """Refuse an export that lost lines, or goes on."""
    if line.get("lines") != number - 1:
        raise InputError(f"the export had {line.get('lines')} lines, here are {number - 1}")
    if any(text.strip() for text in rest):
        raise InputError("the file goes on after the end of the export")


def _refuse(constant: str) -> None:
    raise InputError(f"{constant} stands there, expected finite numbers")
