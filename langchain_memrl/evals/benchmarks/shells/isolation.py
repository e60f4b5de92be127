"""Goes into a root of its own: a fresh layer in memory over a folder that stays as it is.

What runs afterwards sees the files of that folder, its own processes and a network without a way
out. It is root there without the rights that reach further. This guards the machine against what
an agent does by mistake or out of curiosity; it is no virtual machine, and a hole in the kernel is
a hole in it.
"""

import os
import resource
import socket
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from langchain_memrl.evals.benchmarks import kernel
from langchain_memrl.evals.benchmarks.shells.kernel import (
    enter_root,
    hide_process,
    keep_capabilities,
)

NAMESPACES = (
    kernel.NEW_MOUNTS | kernel.NEW_NETWORK | kernel.NEW_IPC | kernel.NEW_UTS | kernel.NEW_CGROUP
)
HOSTNAME = "machine"
DEVICES = {"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9}
LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}
LOOKED_AT_ONLY = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi")
"""Parts of /proc that belong to the whole machine and that root could write to."""
HIDDEN = ("kcore", "kmsg", "keys", "key-users", "timer_list", "sched_debug", "1/cmdline")


@dataclass(frozen=True, slots=True)
class Limits:
    """What a try may use.

    Attributes:
        processes: Processes and threads.
        memory: Bytes, the files that it writes included.
        disk: Bytes of files that it writes or changes.
        inodes: Files that it makes or changes.
        open_files: Per process.
    """

    processes: int = 128
    memory: int = 512 * 2**20
    disk: int = 256 * 2**20
    inodes: int = 100_000
    open_files: int = 1024


def enter(root: Path, limits: Limits) -> None:
    """Go into namespaces of its own and into a fresh root, and give up what reaches beyond it.

    The calling process is the first of a new namespace for processes.

    Args:
        root: The folder below; it is never written to.
        limits: How much may be written, and how many files may be open.

    Raises:
        OSError: The kernel refuses a step; the error names it.
    """
    kernel.unshare(NAMESPACES)
    kernel.mount("", "/", flags=kernel.PRIVATE | kernel.RECURSIVE)
    _mount_root(root, limits)
    _mount_devices(root / "dev")
    _mount_processes(root / "proc", root / "dev" / "null")
    enter_root(root)
    _name()
    kernel.start_loopback()
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits.open_files, limits.open_files))
    # 1 and not 0: with 0 a crash would still start the machine's own collector of core files.
    resource.setrlimit(resource.RLIMIT_CORE, (1, 1))
    keep_capabilities()
    hide_process("init")


def _mount_root(root: Path, limits: Limits) -> None:
    """Lay a fresh layer over the root, at the place of the root itself."""
    below = os.open(root, os.O_PATH | os.O_DIRECTORY)
    size = f"size={limits.disk},nr_inodes={limits.inodes},mode=755"
    kernel.mount("tmpfs", root, "tmpfs", kernel.NO_DEVICES, size)
    os.chdir(root)
    os.mkdir("upper", 0o755)
    os.mkdir("work", 0o755)
    layers = f"lowerdir=/proc/self/fd/{below},upperdir=upper,workdir=work"
    kernel.mount("overlay", root, "overlay", kernel.NO_DEVICES, layers)
    os.close(below)


def _mount_devices(folder: Path) -> None:
    """A few harmless devices, terminals of its own, and shared memory."""
    folder.mkdir(exist_ok=True)
    kernel.mount("tmpfs", folder, "tmpfs", kernel.NO_SUID, "size=64k,mode=755")
    mask = os.umask(0)
    for name, minor in DEVICES.items():
        os.mknod(folder / name, 0o666 | stat.S_IFCHR, os.makedev(1, minor))
    os.mknod(folder / "tty", 0o666 | stat.S_IFCHR, os.makedev(5, 0))
    os.umask(mask)
    for name, target in LINKS.items():
        (folder / name).symlink_to(target)
    for name in ("pts", "shm"):
        (folder / name).mkdir()
    options = "newinstance,ptmxmode=0666,mode=620"
    kernel.mount("devpts", folder / "pts", "devpts", kernel.NO_SUID | kernel.NO_EXEC, options)
    flags = kernel.NO_SUID | kernel.NO_DEVICES
    kernel.mount("tmpfs", folder / "shm", "tmpfs", flags, "size=16m,mode=1777")


def _mount_processes(folder: Path, nothing: Path) -> None:
    """The view of its own processes; of the machine itself nothing can be changed there."""
    folder.mkdir(exist_ok=True)
    kernel.mount("proc", folder, "proc", kernel.NO_SUID | kernel.NO_DEVICES | kernel.NO_EXEC)
    for name in filter(lambda name: (folder / name).exists(), LOOKED_AT_ONLY):
        part = str(folder / name)
        kernel.mount(part, part, flags=kernel.BIND | kernel.RECURSIVE)
        kernel.mount("", part, flags=kernel.BIND | kernel.REMOUNT | kernel.READ_ONLY)
    for name in filter(lambda name: (folder / name).exists(), HIDDEN):
        kernel.mount(str(nothing), folder / name, flags=kernel.BIND)


def _name() -> None:
    """The name that the system goes by, also in its files; `localhost` is itself."""
    socket.sethostname(HOSTNAME)
    for file, text in (("hostname", HOSTNAME), ("hosts", f"127.0.0.1 localhost {HOSTNAME}")):
        with suppress(FileNotFoundError):
            Path("/etc", file).write_text(f"{text}\n")
