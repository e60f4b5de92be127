"""The few calls to the Linux kernel that Python 3.11 has no words for; they raise OSError."""

import ctypes
import os
from functools import cache
from pathlib import Path

NEW_MOUNTS, NEW_CGROUP, NEW_UTS = 0x00020000, 0x02000000, 0x04000000
NEW_IPC, NEW_PIDS, NEW_NETWORK = 0x08000000, 0x20000000, 0x40000000
"""Kinds of namespaces."""
READ_ONLY, NO_SUID, NO_DEVICES, NO_EXEC = 1, 2, 4, 8
REMOUNT, BIND, RECURSIVE, PRIVATE = 32, 4096, 16384, 1 << 18
"""Flags of a mount."""
DETACH = 2
SET_PARENT_DEATH_SIGNAL, SET_DUMPABLE, SET_NAME, DROP_BOUND = 1, 4, 15, 24
CAPABILITIES = {
    "chown": 0,
    "dac_override": 1,
    "fowner": 3,
    "fsetid": 4,
    "kill": 5,
    "setgid": 6,
    "setuid": 7,
    "audit_write": 29,
}
"""What root may do in a try: change owners and modes, become somebody else, end processes.

`audit_write` is there because `su` and `passwd` give up without it. What reaches beyond a try is
not: mounting, devices, the network, the clock, modules, tracing, limits.
"""
CAPABILITIES_VERSION = 0x20080522


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint32) for name in ("effective", "permitted", "inheritable"))


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> int:
    result: int = getattr(_library(), name)(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def unshare(namespaces: int) -> None:
    """Leave namespaces; a new one for processes begins with the next child."""
    _call("unshare", namespaces)


def mount(source: str, target: str | Path, kind: str = "", flags: int = 0, data: str = "") -> None:
    """Mount something, bind it elsewhere, or change the flags of what is mounted."""
    texts = [text.encode() or None for text in (source, str(target), kind)]
    try:
        _call("mount", *texts, ctypes.c_ulong(flags), data.encode() or None)
    except OSError as error:
        raise OSError(error.errno, f"{kind or 'bind'} on {target}: {error.strerror}") from error


def enter_root(folder: Path) -> None:
    """Make a mounted folder the root of this mount namespace, and let go of everything else."""
    os.chdir(folder)
    _call("pivot_root", b".", b".")
    _call("umount2", b".", DETACH)
    os.chdir("/")


def die_with_parent(signal: int) -> None:
    """Get this signal when the thread that made this process ends."""
    _call("prctl", SET_PARENT_DEATH_SIGNAL, signal, 0, 0, 0)


def hide_process(name: str) -> None:
    """Rename this process, and let none without the right to trace look into it."""
    _call("prctl", SET_NAME, name.encode(), 0, 0, 0)
    _call("prctl", SET_DUMPABLE, 0, 0, 0, 0)


def keep_capabilities() -> None:
    """Give up every capability but those in `CAPABILITIES`, for good."""
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    kept = set(CAPABILITIES.values())
    for capability in set(range(last + 1)) - kept:
        _call("prctl", DROP_BOUND, capability, 0, 0, 0)
    mask = sum(1 << capability for capability in kept)
    header, sets = _Header(CAPABILITIES_VERSION, 0), (_Sets * 2)()
    sets[0].effective = sets[0].permitted = mask
    _call("capset", ctypes.byref(header), ctypes.byref(sets))
