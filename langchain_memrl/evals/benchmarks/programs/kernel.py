"""How a try at a program leaves the machine, and what it sees and may do then."""

import ctypes
import os
import struct
from collections.abc import Iterable

from langchain_memrl.evals.benchmarks import kernel
from langchain_memrl.evals.benchmarks.kernel import call, control, mount

APART = kernel.NEW_MOUNTS | kernel.NEW_UTS | kernel.NEW_IPC | kernel.NEW_PIDS | kernel.NEW_NETWORK
"""Everything but accounts: mounts, host name, shared memory, processes, network."""

AT_FDCWD, AT_RECURSIVE = -100, 0x8000
MOUNT_ATTR_RDONLY = 1
SYS_MOUNT_SETATTR = 442
PR_SET_KEEPCAPS, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 8, 36, 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 47, 2
CAP_DAC_READ_SEARCH = 2


def leave() -> None:
    """Leave the machine's mounts, processes and network; who may not has an account map, too.

    Processes started from now on are apart; this one must have no threads.
    """
    user, group = os.getuid(), os.getgid()
    try:
        kernel.unshare(APART)
    except PermissionError:
        kernel.unshare(APART | kernel.NEW_USERS)
        for file, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            with open(f"/proc/self/{file}", "w", encoding="ascii") as handle:
                handle.write(text)


def make_read_only() -> None:
    """Take the right to write from everything that is mounted, for this process's view only."""
    mount("", "/", flags=kernel.RECURSIVE | kernel.PRIVATE)
    # struct mount_attr: set, clear, propagation, user namespace
    attributes = struct.pack("QQQQ", MOUNT_ATTR_RDONLY, 0, 0, 0)
    call(
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
    flags = kernel.NO_SUID | kernel.NO_DEVICES
    mount("tmpfs", path, "tmpfs", flags, f"size={size},mode={mode}")


def mount_memory_but(path: str, size: int, kept: Iterable[str]) -> None:
    """The same, with some of the folders that were in it, as they were."""
    handles = {folder: os.open(folder, os.O_PATH) for folder in kept}
    mount_memory(path, size)
    for folder, handle in handles.items():
        os.makedirs(folder, exist_ok=True)
        mount(f"/proc/self/fd/{handle}", folder, flags=kernel.BIND | kernel.RECURSIVE)
        os.close(handle)


def mount_processes() -> None:
    """Show only the processes that are apart, too; none where that is forbidden."""
    flags = kernel.READ_ONLY | kernel.NO_SUID | kernel.NO_DEVICES | kernel.NO_EXEC
    try:
        mount("proc", "/proc", "proc", flags)
    except PermissionError:
        mount_memory("/proc", 4096, "555")


def keep_capabilities() -> None:
    """Keep an administrator's rights through the next change of the account."""
    control(PR_SET_KEEPCAPS, 1)


def drop_capabilities(*, but_reading: bool) -> None:
    """Give up the rights of an administrator, for this process and all that it starts.

    Args:
        but_reading: Whether to keep one, that of reading every file.
    """
    kept = 1 << CAP_DAC_READ_SEARCH if but_reading else 0
    kernel.set_capabilities(kept, inheritable=kept)
    if but_reading:
        control(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH)
    control(PR_SET_NO_NEW_PRIVS, 1)


def show_itself() -> None:
    """Let a process read about itself after a change of its account."""
    control(kernel.SET_DUMPABLE, 1)


def adopt_orphans() -> None:
    """Become the parent of all that this process's children leave behind."""
    control(PR_SET_CHILD_SUBREAPER, 1)
