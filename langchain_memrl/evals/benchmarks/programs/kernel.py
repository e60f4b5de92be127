"""What Linux offers to shut a process in, as far as Python 3.11 has no function for it."""

import ctypes
import fcntl
import os
import signal
import socket
import struct
from collections.abc import Iterable

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
APART = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET
"""Everything but accounts: mounts, host name, shared memory, processes, network."""

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
MOUNT_ATTR_RDONLY = 1
SYS_MOUNT_SETATTR = 442
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_KEEPCAPS = 1, 4, 8
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 47, 2
CAP_DAC_READ_SEARCH = 2
CAPABILITIES_V3 = 0x20080522
SIOCSIFFLAGS, IFF_UP = 0x8914, 1


def _call(name: str, *arguments: object) -> None:
    """Call a function of the C library.

    Raises:
        OSError: It fails.
    """
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def unshare() -> None:
    """Leave the machine's mounts, processes and network; who may not has an account map, too.

    Processes started from now on are apart; this one must have no threads.
    """
    user, group = os.getuid(), os.getgid()
    try:
        _call("unshare", APART)
    except PermissionError:
        _call("unshare", APART | CLONE_NEWUSER)
        for file, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            with open(f"/proc/self/{file}", "w", encoding="ascii") as handle:
                handle.write(text)


def make_read_only() -> None:
    """Take the right to write from everything that is mounted, for this process's view only."""
    _call("mount", None, b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None)
    # struct mount_attr: set, clear, propagation, user namespace
    attributes = struct.pack("QQQQ", MOUNT_ATTR_RDONLY, 0, 0, 0)
    _call(
        "syscall",
        ctypes.c_long(SYS_MOUNT_SETATTR),
        ctypes.c_int(AT_FDCWD),
        b"/",
        ctypes.c_uint(AT_RECURSIVE),
        attributes,
        ctypes.c_size_t(len(attributes)),
    )


def mount_memory(path: str, size: int, mode: str = "1777") -> None:
    """An empty folder in memory, of at most so many bytes."""
    flags = ctypes.c_ulong(MS_NOSUID | MS_NODEV)
    options = f"size={size},mode={mode}".encode()
    _call("mount", b"tmpfs", path.encode(), b"tmpfs", flags, options)


def mount_memory_but(path: str, size: int, kept: Iterable[str]) -> None:
    """The same, with some of the folders that were in it, as they were."""
    handles = {folder: os.open(folder, os.O_PATH) for folder in kept}
    mount_memory(path, size)
    for folder, handle in handles.items():
        os.makedirs(folder, exist_ok=True)
        flags = ctypes.c_ulong(MS_BIND | MS_REC)
        _call("mount", f"/proc/self/fd/{handle}".encode(), folder.encode(), None, flags, None)
        os.close(handle)


def mount_processes() -> None:
    """Show only the processes that are apart, too; none where that is forbidden."""
    flags = ctypes.c_ulong(MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)
    try:
        _call("mount", b"proc", b"/proc", b"proc", flags, None)
    except PermissionError:
        mount_memory("/proc", 4096, "555")


def start_loopback() -> None:
    """Let processes that are apart reach each other at 127.0.0.1."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP))


def keep_capabilities() -> None:
    """Keep an administrator's rights through the next change of the account."""
    _call("prctl", PR_SET_KEEPCAPS, 1, 0, 0, 0)


def drop_capabilities(*, but_reading: bool) -> None:
    """Give up the rights of an administrator, for this process and all that it starts.

    Args:
        but_reading: Whether to keep one, that of reading every file.
    """
    kept = 1 << CAP_DAC_READ_SEARCH if but_reading else 0
    header = struct.pack("Ii", CAPABILITIES_V3, 0)
    _call("capset", header, struct.pack("6I", kept, kept, kept, 0, 0, 0))
    if but_reading:
        _call("prctl", PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH, 0, 0)
    _call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def end_with_parent(sign: signal.Signals = signal.SIGKILL) -> None:
    """Get a signal when the process that started this one ends."""
    _call("prctl", PR_SET_PDEATHSIG, int(sign), 0, 0, 0)


def show_itself() -> None:
    """Let a process read about itself after a change of its account."""
    _call("prctl", PR_SET_DUMPABLE, 1, 0, 0, 0)


def adopt_orphans() -> None:
    """Become the parent of all that this process's children leave behind."""
    _call("prctl", PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
