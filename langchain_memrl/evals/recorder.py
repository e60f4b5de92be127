"""The file of a run: one header, then lines as they come. It is only ever continued, never mixed.

A run that was killed leaves whole lines and perhaps one that is cut short. The next run with the
same settings drops that one and goes on; with other settings it is refused.
"""

import fcntl
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self

from langchain_memrl.errors import InputError
from langchain_memrl.evals.records import KINDS, Header, line
from langchain_memrl.evals.unit import Record, Unit

FILE = "records.jsonl"
"""The file of a suite with one world; others have one file per world, `<world>.jsonl`."""


def record_path(out: Path, world: str) -> Path:
    """Where the records of a world are."""
    return out / (f"{world.replace('/', '-')}.jsonl" if world else FILE)


class Line(NamedTuple):
    """A record that is there, and where its line ends."""

    record: Record
    end: int


class Recorder:
    """Continues a file of records, or begins it.

    Attributes:
        path: Where the file is.
        finished: Units whose records are followed by those of another one.
        last: The last unit of the file; whether it is complete only its plan can tell.
        lines: The records of that unit.
        start: Where they begin.
    """

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self.path = path
        self.finished: list[Unit] = []
        self.last: Unit | None = None
        self.lines: list[Line] = []
        self.start = 0

    @classmethod
    def open(cls, path: Path, header: Header) -> Self:
        """Open a file; nobody else may write it meanwhile.

        Raises:
            InputError: It cannot be written, is in use, holds something else than records, or
                belongs to a run with other settings.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("a+b")
        except OSError as error:
            raise InputError(
                f"{path} cannot be written ({error}); choose another folder"
            ) from error
        recorder = cls(file, path)
        try:
            recorder._lock()
            recorder._continue(header)
        except BaseException:
            file.close()
            raise
        return recorder

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the file to others."""
        self._file.close()

    def cut(self, end: int) -> None:
        """Drop what comes after a place."""
        self._file.truncate(end)
        self._file.seek(0, os.SEEK_END)

    def append(self, lines: Iterable[str]) -> None:
        """Add whole lines; a kill loses none that were added."""
        self._file.write("".join(lines).encode())
        self._file.flush()

    # --- what is there --------------------------------------------------------------------------

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InputError(f"another run is writing {self.path}") from error

    def _continue(self, header: Header) -> None:
        """Read to the last whole line; begin the file where there is none."""
        self._file.seek(0)
        first = self._file.readline()
        if not first.endswith(b"\n"):
            if first and not line(header).encode().startswith(first):
                raise InputError(f"{self.path} holds something else than records")
            self.cut(0)
            self.append([line(header)])
            return
        _compare(self.path, first, header)
        end = self.start = len(first)
        for raw in self._file:
            if not raw.endswith(b"\n"):
                break
            end += len(raw)
            self._keep(_parse(self.path, raw), end, len(raw))
        self.cut(end)

    def _keep(self, fields: dict[str, Any], end: int, size: int) -> None:
        unit = Unit(fields["world"], fields["arm"], fields["seed"])
        if unit != self.last:
            if self.last is not None:
                self.finished.append(self.last)
            self.last, self.lines, self.start = unit, [], end - size
        self.lines.append(Line(_record(fields), end))


def check_header(path: Path, header: Header) -> None:
    """Make sure that a file that is there already belongs to this run.

    Raises:
        InputError: It holds something else than records, or belongs to a run with other settings.
    """
    with path.open("rb") as file:
        first = file.readline()
    if first.endswith(b"\n"):
        _compare(path, first, header)


def _compare(path: Path, first: bytes, header: Header) -> None:
    there, now = _parse(path, first), json.loads(line(header))
    if there["kind"] != "header":
        raise InputError(f"{path} holds no header")
    differences = _differences(there, now)
    if differences:
        raise InputError(
            f"{path} is another run's: {'; '.join(differences)}. Choose another folder, "
            "or the settings of that run to go on with it"
        )


def _parse(path: Path, raw: bytes) -> dict[str, Any]:
    try:
        fields: dict[str, Any] = json.loads(raw)
        known = fields["kind"] in KINDS
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} holds a damaged line ({error})") from error
    if not known:
        raise InputError(f"{path} holds a line of kind {fields['kind']!r}")
    return fields


def _record(fields: Mapping[str, Any]) -> Record:
    values = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in fields.items()
        if name != "kind"
    }
    record: Record = KINDS[fields["kind"]](**values)
    return record


def _differences(there: Mapping[str, Any], now: Mapping[str, Any], prefix: str = "") -> list[str]:
    """What differs, name by name."""
    found = []
    for name in [*now, *(name for name in there if name not in now)]:
        old, new = there.get(name), now.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            found += _differences(old, new, f"{prefix}{name}.")
        elif old != new:
            found.append(f"{prefix}{name} is {_short(old)} there and {_short(new)} now")
    return found


def _short(value: Any) -> str:
    text = json.dumps(
        sorted(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
    )
    return text if len(text) <= 60 else f"{text[:57]}..."
