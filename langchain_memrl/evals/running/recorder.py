"""The file of a run: one header, then lines as they come. It is only ever continued, never mixed.

A run that was killed leaves whole lines and perhaps one that is cut short. The next run that fits
drops that one and goes on; with other settings it is refused. All records of a unit stand together,
and only the last unit of a file may be unfinished.
"""

import fcntl
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self

from langchain_memrl.errors import InputError
from langchain_memrl.evals.records import KINDS, Header, line
from langchain_memrl.evals.running.headers import merge
from langchain_memrl.evals.running.unit import Record, Unit

FILE = "records.jsonl"
"""The file of a suite with one world; others have one file per world, `<world>.jsonl`."""


def record_path(out: Path, world: str) -> Path:
    """Where the records of a world are."""
    return out / (f"{world.replace('/', '-')}.jsonl" if world else FILE)


class Line(NamedTuple):
    """A record that is there, and where its line ends."""

    record: Record
    end: int


class Span(NamedTuple):
    """Where the lines of a unit are, how many episodes they tell of, and how many failed."""

    start: int
    end: int
    episodes: int
    errors: int


class Recorder:
    """Continues a file of records, or begins it.

    Attributes:
        path: Where the file is.
        units: What is there, in the order of the file.
    """

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self.path = path
        self.units: dict[Unit, Span] = {}

    @classmethod
    def open(cls, path: Path, header: Header, *, anew: bool = False) -> Self:
        """Open a file; nobody else may write it meanwhile.

        Args:
            path: Where it is, or will be.
            header: The header of the run.
            anew: Whether a file that holds a header and nothing else may be of another run.

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
            recorder._continue(header, anew=anew)
        except BaseException:
            recorder.close()
            raise
        return recorder

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the file to others."""
        self._file.close()

    @property
    def last(self) -> Unit | None:
        """The last unit of the file; whether it is complete only its plan can tell."""
        return next(reversed(self.units), None)

    def read(self, unit: Unit) -> list[Line]:
        """The records of a unit; none where it has none yet."""
        if unit not in self.units:
            return []
        start, end = self.units[unit][:2]
        self._file.seek(start)
        found = []
        for raw in self._file.read(end - start).splitlines(keepends=True):
            start += len(raw)
            found.append(Line(_record(_parse(self.path, raw)), start))
        return found

    def reopen(self, unit: Unit, kept: int) -> None:
        """Keep only the first records of a unit, at the end of the file, to go on with it.

        Args:
            unit: A unit that is there.
            kept: How many of its records.
        """
        start, end = self.units[unit][:2]
        place = self.read(unit)[kept - 1].end if kept else start
        if unit == self.last:
            self._file.truncate(place)
        else:
            self._file.seek(0)
            all_ = self._file.read()
            self._rewrite(all_[:start] + all_[end:] + all_[start:place])
        self._scan()

    def append(self, lines: Iterable[str]) -> None:
        """Add whole lines; a kill loses none that were added."""
        self._file.seek(0, os.SEEK_END)
        self._file.write("".join(lines).encode())
        self._file.flush()

    # --- what is there --------------------------------------------------------------------------

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            replaced = os.fstat(self._file.fileno()).st_ino != self.path.stat().st_ino
        except OSError as error:
            raise InputError(f"another run is writing {self.path}") from error
        if replaced:
            raise InputError(f"another run is writing {self.path}")

    def _continue(self, header: Header, *, anew: bool) -> None:
        """Read to the last whole line; begin the file where there is none."""
        self._file.seek(0)
        first = self._file.readline()
        if not first.endswith(b"\n"):
            if first and not first.startswith(b'{"kind": "header"'[: len(first)]):
                raise InputError(f"{self.path} holds something else than records")
            self._file.truncate(0)
            self.append([line(header)])
            return
        if anew and not self._file.readline().endswith(b"\n"):
            self._file.truncate(0)
            self.append([line(header)])
            return
        both = line(merge(self.path, _header(self.path, first), header)).encode()
        self._scan()
        if both != first:
            self._file.seek(len(first))
            self._rewrite(both + self._file.read())
            self._scan()

    def _scan(self) -> None:
        """Find the units, and drop a line that is cut short."""
        self._file.seek(0)
        end = len(self._file.readline())
        self.units, last = {}, None
        for raw in self._file:
            if not raw.endswith(b"\n"):
                break
            fields = _parse(self.path, raw)
            unit = Unit(fields["world"], fields["arm"], fields["seed"])
            if unit != last and unit in self.units:
                raise InputError(f"{self.path} holds {' '.join(map(str, unit))} in two places")
            before = self.units.get(unit, Span(end, end, 0, 0))
            end += len(raw)
            self.units[unit] = Span(
                before.start,
                end,
                before.episodes + (fields["kind"] == "episode"),
                before.errors + bool(fields.get("error")),
            )
            last = unit
        self._file.truncate(end)

    def _rewrite(self, content: bytes) -> None:
        """Put another content in place of the file, all at once."""
        partial = self.path.with_suffix(".part")
        partial.unlink(missing_ok=True)
        file = partial.open("a+b")
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
        partial.replace(self.path)
        self._file.close()
        self._file = file


def fitting(out: Path, header: Header, *, accept_edits: bool) -> tuple[Header, bool]:
    """The header that goes on with a folder, and whether the folder is to be begun anew.

    A folder without a single record, such as a mistake in the first task leaves, begins anew.

    Raises:
        InputError: It holds something else than records, or belongs to another run.
    """
    there = []
    empty = True
    for path in sorted(out.glob("*.jsonl")):
        with path.open("rb") as file:
            first = file.readline()
            if first.endswith(b"\n"):
                there.append((path, _header(path, first)))
                empty = empty and not file.readline().endswith(b"\n")
    merged = header
    try:
        for path, one in there:
            merged = merge(path, one, merged, accept_edits=accept_edits)
    except InputError:
        if not empty:
            raise
        return header, True
    return merged, False


def _header(path: Path, first: bytes) -> Header:
    fields = _parse(path, first)
    if fields.pop("kind") != "header":
        raise InputError(f"{path} holds no header")
    try:
        return Header(**fields)
    except TypeError as error:
        raise InputError(f"{path} holds no header of a run ({error})") from error


def _parse(path: Path, raw: bytes) -> dict[str, Any]:
    try:
        fields: dict[str, Any] = json.loads(raw)
        known = fields["kind"] in KINDS
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} holds a damaged line ({error})") from error
    if not known:
        raise InputError(f"{path} holds a line of kind {fields['kind']!r}")
    return fields


def _record(fields: dict[str, Any]) -> Record:
    values = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in fields.items()
        if name != "kind"
    }
    record: Record = KINDS[fields["kind"]](**values)
    return record
