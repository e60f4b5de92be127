"""Calls to the Linux kernel that Python 3.11 has no words for, for tries that are shut in.

They raise OSError with the name of the call.
"""

import ctypes
import fcntl
import os
import signal
import socket
import struct
from functools import cache
from pathlib import Path

NEW_MOUNTS, NEW_CGROUP, NEW_UTS, NEW_IPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
NEW_USERS, NEW_PIDS, NEW_NETWORK = 0x10000000, 0x20000000, 0x40000000
"""Kinds of namespaces."""
READ_ONLY, NO_SUID, NO_DEVICES, NO_EXEC = 1, 2, 4, 8
REMOUNT, BIND, RECURSIVE, PRIVATE = 32, 4096, 16384, 1 << 18
"""Flags of a mount."""
SET_PARENT_DEATH_SIGNAL, SET_DUMPABLE = 1, 4
CAPABILITIES_VERSION = 0x20080522
GET_FLAGS, SET_FLAGS, UP = 0x8913, 0x8914, 1
"""Requests about a network interface, and the flag that switches one on."""


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint32) for name in ("effective", "permitted", "inheritable"))


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: object) -> None:
    """Call a function of the C library that gives a negative number where it fails."""
    if getattr(_library(), name)(*arguments) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def control(option: int, value: int | bytes, more: int = 0) -> None:
    """Set something about this process."""
    call("prctl", option, value, more, 0, 0)


def unshare(namespaces: int) -> None:
    """Leave namespaces; a new one for processes begins with the next child."""
    call("unshare", namespaces)


def mount(source: str, target: str | Path, kind: str = "", flags: int = 0, data: str = "") -> None:
    """Mount something, bind it elsewhere, or change the flags of what is mounted."""
    texts = [text.encode() or None for text in (source, str(target), kind)]
    try:
        call("mount", *texts, ctypes.c_ulong(flags), data.encode() or None)
    except OSError as error:
        raise OSError(error.errno, f"{kind or 'bind'} on {target}: {error.strerror}") from error


def end_with_parent(sign: signal.Signals = signal.SIGKILL) -> None:
    """Get a signal when the thread that made this process ends."""
    control(SET_PARENT_DEATH_SIGNAL, int(sign))


def start_loopback() -> None:
    """Switch on the only interface of a network without a way out: 127.0.0.1."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = struct.pack("16sh22x", b"lo", 0)
        _, flags = struct.unpack("16sh22x", fcntl.ioctl(any_socket, GET_FLAGS, asked))
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sh22x", b"lo", flags | UP))


def set_capabilities(effective: int, inheritable: int = 0) -> None:
    """Keep only these of the first 32 capabilities, and none beyond; bit n is capability n."""
    header, sets = _Header(CAPABILITIES_VERSION, 0), (_Sets * 2)()
    sets[0].effective = sets[0].permitted = effective
    sets[0].inheritable = inheritable
    call("capset", ctypes.byref(header), ctypes.byref(sets))
