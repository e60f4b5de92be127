"""A control group of a try's own, which bounds its processes and its memory (versions 1 and 2)."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

MOUNTS, OWN = Path("/proc/self/mounts"), Path("/proc/self/cgroup")
CONTROLLERS = ("pids", "memory")
LIMITS = {
    "pids": (("pids.max", "processes"),),
    "memory": (
        ("memory.limit_in_bytes", "memory"),
        ("memory.memsw.limit_in_bytes", "memory"),
        ("memory.max", "memory"),
        ("memory.swap.max", "none"),
    ),
}
"""Files of each controller, of both versions, and what they hold."""
RETRIES = 50
PAUSE = 0.01
"""Seconds."""


class Group(NamedTuple):
    """A control group: one folder, or one for each controller in version 1."""

    folders: tuple[Path, ...]

    def join(self) -> None:
        """Put the calling process into it."""
        for folder in self.folders:
            (folder / "cgroup.procs").write_text("0")

    def remove(self) -> None:
        """Remove it once nothing runs in it; the kernel may need a moment to notice."""
        for folder in self.folders:
            for _ in range(RETRIES):
                with suppress(OSError):
                    folder.rmdir()
                if not folder.exists():
                    break
                time.sleep(PAUSE)


def make_group(name: str, *, processes: int, memory: int) -> Group:
    """Make a control group.

    Args:
        name: The name of its folder.
        processes: The most processes and threads.
        memory: The most bytes, files in memory included; nothing is swapped out.

    Raises:
        OSError: This process may not make one, here or at the top.
    """
    values = {"processes": processes, "memory": memory, "none": 0}
    made: list[Path] = []
    group = Group(())
    for controller in CONTROLLERS:
        folder = _folder(controller, name)
        if folder not in made:
            made.append(folder)
        group = Group(tuple(made))
        files = [(folder / file, values[what]) for file, what in LIMITS[controller]]
        try:
            for file, value in files:
                if file.exists():
                    file.write_text(str(value))
        except OSError:
            group.remove()
            raise
    return group


def _folder(controller: str, name: str) -> Path:
    """Make the folder below the own group, or else at the top."""
    failed, why = 0, "none is mounted"
    for parent, version in _parents(controller):
        try:
            if version == 2:
                _enable(parent)
            folder = parent / name
            folder.mkdir(exist_ok=True)
            if not any((folder / file).exists() for file, _ in LIMITS[controller]):
                folder.rmdir()
                continue
            return folder
        except OSError as error:
            failed, why = error.errno or 0, f"{parent}: {error.strerror}"
    raise OSError(
        failed,
        f"no control group for {controller} can be made ({why}); a container needs --privileged "
        "--cgroupns=host",
    )


def _enable(parent: Path) -> None:
    """Let the children of a group of version 2 be limited."""
    control = parent / "cgroup.subtree_control"
    missing = set(CONTROLLERS) - set(control.read_text().split())
    if missing:
        control.write_text(" ".join(f"+{name}" for name in sorted(missing)))


def _parents(controller: str) -> Iterator[tuple[Path, int]]:
    """Folders that may get a child, version 1 first, each with its version."""
    own = _own_groups()
    mounts = [line.split(" ") for line in MOUNTS.read_text().splitlines()]
    for kind, version in (("cgroup", 1), ("cgroup2", 2)):
        for _, place, found, options, *_ in mounts:
            if found == kind and (version == 2 or controller in options.split(",")):
                path = own.get(controller if version == 1 else "", "/").lstrip("/")
                yield from ((folder, version) for folder in _both(Path(place), path))


def _both(top: Path, path: str) -> list[Path]:
    here = top / path
    return [here, top] if path and here.is_dir() else [top]


def _own_groups() -> dict[str, str]:
    """The path of this process's group for each controller; of version 2 for the empty name."""
    lines = OWN.read_text().splitlines()
    parts = [line.split(":", 2) for line in lines]
    return {name: path for _, names, path in parts for name in names.split(",")}


def unique_name() -> str:
    """A name for a group, which tells whose it is."""
    return f"memrl-{os.getpid()}-{time.monotonic_ns():x}"
