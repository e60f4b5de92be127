"""The folder with the files of a system, made once by the user and never written to."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from langchain_memrl.errors import ConfigError
from langchain_memrl.evals.benchmarks.downloads import digest

VARIABLE = "MEMRL_ROOT"
"""The environment variable that names the folder where nothing else does."""
PACKAGES = (
    "acl,adduser,bc,cron,curl,file,gawk,git,procps,psmisc,rsync,sudo,tree,unzip,vim,wget,zip,zsh"
)
RECIPE = f"debootstrap --variant=minbase --include={PACKAGES} bookworm FOLDER"
HOW = (
    "lifelong-os needs a folder with the files of a Debian: make it once, as root, with "
    f"`{RECIPE}` (apt-get install debootstrap), and name it with --root FOLDER or {VARIABLE}"
)
PROGRAMS = (
    *("bash", "cat", "find", "gpasswd", "addgroup", "useradd", "chage", "chsh", "su"),
    *("awk", "pgrep", "vim", "zsh", "apt-get"),
)
"""What the tasks use: two of them install zsh, which takes no network where it is there."""
FOLDERS = ("usr/bin", "usr/sbin", "bin", "sbin", "usr/local/bin")


class Root(NamedTuple):
    """A folder with a system.

    Attributes:
        folder: Where it is.
        name: What the system calls itself, such as `Debian 12.15`.
        packages: SHA-256 of its list of packages with their versions.
    """

    folder: Path
    name: str
    packages: str


def find_root(folder: Path | None) -> Root:
    """The folder that is named, or else the one that the environment names, looked over.

    Raises:
        ConfigError: None is named, or it holds no such system.
    """
    named = os.environ.get(VARIABLE, "")
    if folder is None and not named:
        raise ConfigError(HOW)
    place = (folder or Path(named)).resolve()
    if place == Path(place.anchor):
        raise ConfigError(f"{place} is this machine itself; {HOW}")
    status = place / "var/lib/dpkg/status"
    if not status.is_file():
        raise ConfigError(f"{place} holds no Debian (no {status}); {HOW}")
    missing = sorted(_missing(place, PROGRAMS))
    if missing:
        raise ConfigError(f"{place} lacks {', '.join(missing)}; {HOW}")
    return Root(place, _name(place), digest(status.read_bytes()))


def _missing(place: Path, programs: Iterable[str]) -> set[str]:
    """Programs that are not there; where a link leads to is another root's business."""
    return {
        name
        for name in programs
        if not any(os.path.lexists(place / folder / name) for folder in FOLDERS)
    }


def _name(place: Path) -> str:
    """From its own files; a release like 12.15 is told by one of them alone."""
    release = (place / "etc/os-release").read_text(encoding="utf-8")
    fields = dict(line.split("=", 1) for line in release.splitlines() if "=" in line)
    version = fields.get("VERSION_ID", "").strip('"')
    exact = place / "etc/debian_version"
    if fields.get("ID") == "debian" and exact.is_file():
        version = exact.read_text(encoding="utf-8").strip()
    return f"{fields.get('NAME', 'Linux').strip(chr(34)).split()[0]} {version}".strip()
