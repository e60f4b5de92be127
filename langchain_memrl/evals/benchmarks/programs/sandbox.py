"""The walls around one try: what it may use, what it sees, and that nothing of it is left.

With namespaces (Linux, as root or where accounts may make user namespaces) a try has no network,
sees no other process, may write only into its own folder in memory, and all it started ends with
it. Without them sockets are refused to Python code only, files are protected by the account's
rights alone, and a program that means to can kill its guard.

A try that root starts has an account of nobody. Where Python lies in a folder that only root may
enter, it keeps one right of root's, that of reading every file.

Promised in neither case: that a program cannot read files that the account may read, or talk to a
server behind a Unix socket, or exploit the kernel. Where that matters, run everything in a virtual
machine.
"""

import errno
import os
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from langchain_memrl.evals.benchmarks.kernel import end_with_parent, start_loopback
from langchain_memrl.evals.benchmarks.programs import kernel

FIRST_ACCOUNT, ACCOUNTS = 61_184, 4_000
"""Numbers that belong to nobody; where root runs this, each try has one of them."""
WORK = "work"
NAMESPACES = "namespaces"
LIMITS = "limits only"
TEMPORARY = "/tmp"  # noqa: S108 - a fresh one is mounted there
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a fresh one is mounted there
REFUSED = {"socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto"}


class Limits(NamedTuple):
    """What a try may use.

    Attributes:
        seconds: How long it may take; as the benchmark has it.
        processor: Seconds of computing, per process; then it is likely to be an endless loop.
        memory: Bytes of address space, per process.
        file: Bytes of a file that it writes.
        disk: Bytes of all its files together; only with namespaces.
        processes: How many processes and threads; without namespaces and an account of its own,
            beyond those that the account has already.
    """

    seconds: float = 240.0
    processor: int = 120
    memory: int = 4 * 2**30
    file: int = 64 * 2**20
    disk: int = 256 * 2**20
    processes: int = 64


def run_apart(run: Callable[[], None], kind: str, folder: Path, limits: Limits) -> None:
    """Run something behind the walls and return when it and all that it started have ended.

    Args:
        run: What to run.
        kind: `NAMESPACES` or `LIMITS`.
        folder: A folder with an empty folder `work` in it, where it works.
        limits: What it may use.

    Raises:
        OSError: The walls cannot be built.
    """
    end_with_parent(signal.SIGTERM if kind == LIMITS else signal.SIGKILL)
    _offer_to_the_killer()
    account = FIRST_ACCOUNT + os.getpid() % ACCOUNTS if os.geteuid() == 0 else None
    if kind == LIMITS:
        kernel.adopt_orphans()
        work = tempfile.mkdtemp(dir=folder / WORK)
        os.chmod(work, 0o777)  # noqa: S103 - the try has another account
        _watch(lambda: _enter(run, work, account, limits, refuse=True), limits.seconds)
        _end_orphans()
        shutil.rmtree(work, ignore_errors=True)
        return
    kernel.leave()
    fork_and_wait(lambda: _first_process(run, str(folder / WORK), account, limits))


def works(kind: str, folder: Path) -> bool:
    """Whether walls of a kind can be built here."""
    reader, writer = os.pipe()

    def tell() -> None:
        os.write(writer, b"1")

    fork_and_wait(lambda: run_apart(tell, kind, folder, Limits()))
    os.close(writer)
    with open(reader, "rb") as handle:
        return handle.read() == b"1"


def fork_and_wait(run: Callable[[], None]) -> None:
    """Run something in a child, and wait for its end."""
    child = os.fork()
    if child == 0:
        leave_after(run)
    os.waitpid(child, 0)


def _first_process(run: Callable[[], None], work: str, account: int | None, limits: Limits) -> None:
    """Number 1 among the processes apart: when it ends, all others are killed."""
    end_with_parent()
    kernel.make_read_only()
    kernel.mount_memory_but(TEMPORARY, limits.disk, _needed(TEMPORARY, work))
    kernel.mount_memory(work, limits.disk)
    if os.path.isdir(SHARED_MEMORY):
        kernel.mount_memory(SHARED_MEMORY, limits.disk)
    kernel.mount_processes()
    start_loopback()
    _watch(lambda: _enter(run, work, account, limits, refuse=False), limits.seconds)


def _watch(run: Callable[[], None], seconds: float) -> None:
    """Run something in a child, and return when it ends, its time is up or its owner has ended."""

    class TimeIsUpError(Exception):
        pass

    def stop(number: int, frame: Any) -> None:
        raise TimeIsUpError

    for one in (signal.SIGALRM, signal.SIGTERM):
        signal.signal(one, stop)
    child = os.fork()
    if child == 0:
        for one in (signal.SIGALRM, signal.SIGTERM):
            signal.signal(one, signal.SIG_DFL)
        leave_after(run)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        os.waitpid(child, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except TimeIsUpError:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _enter(
    run: Callable[[], None], work: str, account: int | None, limits: Limits, *, refuse: bool
) -> None:
    """Give up all rights, enter the folder, and run."""
    os.setsid()
    alone = account is not None or not refuse  # nobody else has the account, or is in its map
    home, temporary = f"{work}/home", f"{work}/temporary"
    for path in (home, temporary):
        os.mkdir(path)
        os.chmod(path, 0o777)  # noqa: S103 - nobody else sees it, or it is this try's own
    os.chdir(home)
    for what, most in (
        (resource.RLIMIT_CPU, limits.processor),
        (resource.RLIMIT_AS, limits.memory),
        (resource.RLIMIT_FSIZE, limits.file),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, limits.processes + (0 if alone else _processes_of_mine())),
    ):
        resource.setrlimit(what, (most, most))
    needs_rights = account is not None and not _readable_by_all()
    if account is not None:
        kernel.keep_capabilities()
        _become(account)
    kernel.drop_capabilities(but_reading=needs_rights)
    kernel.show_itself()
    end_with_parent()
    os.environ.update({"HOME": home, "TMPDIR": temporary})
    tempfile.tempdir = None
    if refuse:
        sys.addaudithook(_refuse)
    run()


def _become(account: int) -> None:
    """Change to an account of nobody, where that is possible: not in a map of one account."""
    try:
        os.setgroups([])
        os.setresgid(account, account, account)
        os.setresuid(account, account, account)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EINVAL):
            raise


def _needed(folder: str, work: str) -> list[str]:
    """What is needed of a folder: Python, its packages, and where the try works."""
    paths = {os.path.realpath(path) for path in (*_python(), os.path.dirname(work))}
    inside = [path for path in paths if Path(path).is_relative_to(folder)]
    return sorted(path for path in inside if not set(map(str, Path(path).parents)) & set(inside))


def _python() -> list[str]:
    return [path for path in (sys.prefix, sys.base_prefix, *sys.path) if os.path.isdir(path)]


def _readable_by_all() -> bool:
    """Whether an account of nobody can read Python and its packages."""
    folders = {folder for path in _python() for folder in (Path(path), *Path(path).parents)}
    return all(folder.stat().st_mode & 0o5 == 0o5 for folder in folders)


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event in REFUSED:
        raise PermissionError(f"there is no network here ({event})")


def _processes_of_mine() -> int:
    """How many processes and threads the account has; the limit counts them all."""
    count, me = 0, os.getuid()
    for folder in Path("/proc").glob("[0-9]*/task/*"):
        try:
            count += folder.stat().st_uid == me
        except OSError:
            continue
    return count


def _offer_to_the_killer() -> None:
    """Where memory runs out, the try goes first."""
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as handle:
        handle.write("1000")


def _end_orphans() -> None:
    """Kill whatever the try left behind, until nothing is."""
    while found := _descendants(os.getpid()):
        for process in found:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _descendants(process: int) -> list[int]:
    """The children of a process, and theirs."""
    found = []
    with suppress(OSError):  # it has ended
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        for child in map(int, children):
            found += [child, *_descendants(child)]
    return found


def leave_after(run: Callable[[], None]) -> None:
    """Run something in a forked process, which ends with it and runs nothing else."""
    code = 1
    try:
        run()
        code = 0
    except BaseException as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        sys.stderr.flush()
    finally:
        os._exit(code)
