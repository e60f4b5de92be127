"""A disk that loses power: what it may hold, rebuilt from a trace of every operation.

A sync makes a file's earlier writes durable. What was not synced is kept, lost, or kept in part:
each block of 4 KiB as it was at some moment since the last sync. A name (a file made, renamed,
removed) is durable once anything is synced after it; in the strict form only once its own folder
is.
"""

import struct
from dataclasses import dataclass, field
from pathlib import Path

BLOCK = 4096
HEADER = struct.Struct("<cIIIq")
FOLDER = None


@dataclass
class Content:
    """What a file holds for certain, and what was done to it since."""

    durable: bytes = b""
    pending: list = field(default_factory=list)

    def versions(self):
        """What it was at every moment since its last sync, oldest first."""
        now, found = bytearray(self.durable), [self.durable]
        for kind, offset, data in self.pending:
            if kind == "t":
                del now[offset:]
            now.extend(bytes(max(0, offset + len(data) - len(now))))
            now[offset : offset + len(data)] = data
            found.append(bytes(now))
        return found

    def sync(self):
        self.durable, self.pending = self.versions()[-1], []


def read_trace(path):
    """Every operation in order: kind, path, second path, offset, data."""
    data, place = path.read_bytes(), 0
    while place < len(data):
        kind, first, second, length, offset = HEADER.unpack_from(data, place)
        parts, place = [], place + HEADER.size
        for size in (first, second, length):
            parts.append(data[place : place + size])
            place += size
        yield kind.decode(), parts[0].decode(), parts[1].decode(), offset, parts[2]


class Disk:
    """Replays a trace; `state` says what a power cut at this moment may leave."""

    def __init__(self, *, strict=False):
        self.strict = strict
        self.live = {}
        self.names = {}  # the durable ones
        self.changes = []  # of names, not durable yet

    def apply(self, kind, path, other, offset, data):
        """One operation of the trace."""
        if kind in "cd":
            self._change(("make", path, Content() if kind == "c" else FOLDER))
        elif kind == "r":
            self._change(("rename", path, other))
        elif kind == "u":
            self._change(("remove", path, None))
        elif kind == "s":
            self._sync(path)
        elif path in self.live:  # not a file that was removed while it was open
            what = ("w", offset, data) if kind == "w" else ("t", offset, b"")
            self.live[path].pending.append(what)

    def _change(self, change):
        change_name(self.live, change)
        self.changes.append(change)

    def _sync(self, path):
        if isinstance(self.live.get(path), Content):
            self.live[path].sync()
        later = []
        for change in self.changes:
            folders = {str(Path(name).parent) for name in change[1:] if isinstance(name, str)}
            if self.strict and path not in folders:
                later.append(change)
            else:
                change_name(self.names, change)
        self.changes = later

    def lost(self):
        """Files when nothing is left but what is durable."""
        return {path: content and content.durable for path, content in self.names.items()}

    def kept(self):
        """Files when everything was written."""
        return {path: content and content.versions()[-1] for path, content in self.live.items()}

    def mixed(self, rng):
        """Files when some of the blocks and the first few of the names were written."""
        names = dict(self.names)
        for change in self.changes[: rng.randint(0, len(self.changes))]:
            change_name(names, change)
        return {path: content and mix(content.versions(), rng) for path, content in names.items()}


def mix(versions, rng):
    """Each block, and the length, as of some version that had such a block."""
    length = len(rng.choice(versions))
    blocks = []
    for start in range(0, length, BLOCK):
        block = rng.choice([one for one in versions if len(one) > start])[start : start + BLOCK]
        blocks.append(block.ljust(BLOCK, b"\0"))
    return b"".join(blocks)[:length]


def change_name(names, change):
    kind, path, what = change
    if kind == "make":
        names[path] = what
    elif kind == "remove":
        names.pop(path, None)
    else:
        for old in [name for name in names if name == path or name.startswith(path + "/")]:
            names[what + old[len(path) :]] = names.pop(old)


def put_down(files, origin, place):
    """Write a disk's files into a folder of their own."""
    place.mkdir()
    for path in sorted(files):
        target = place / Path(path).relative_to(origin)
        if not target.parent.is_dir():
            continue  # in a folder whose own name was lost
        if files[path] is FOLDER:
            target.mkdir(exist_ok=True)
        else:
            target.write_bytes(files[path])
