"""Python processes of our own: what they print as JSON is what they found."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import IO, Any, cast

STARTED = "started"
MEBIBYTE = 2**20


def run(program: str, *arguments: object) -> Any:
    """Run a program in a fresh interpreter; what it printed, read as JSON."""
    return Child(program, *arguments).answer()


class Child:
    """A running program.

    Args:
        program: Python source; `sys.argv[1:]` are the arguments.
        *arguments: Passed on as text.
    """

    def __init__(self, program: str, *arguments: object) -> None:
        self._process = subprocess.Popen(  # noqa: S603 (our own program)
            [sys.executable, "-c", program, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._told = cast("IO[str]", self._process.stdin)
        self._said = cast("IO[str]", self._process.stdout)

    def wait_until_started(self) -> None:
        """Wait until the child called `meet`."""
        line = self._said.readline().strip()
        if line != STARTED:
            raise ChildProcessError(f"a process of the bench did not start; it said {line!r}")

    def go(self) -> None:
        """Let a child that called `meet` go on."""
        self._told.write("\n")
        self._told.flush()

    def answer(self) -> Any:
        """What it printed, once it has ended well."""
        said, _ = self._process.communicate()
        if self._process.returncode:
            raise ChildProcessError(f"a process of the bench ended with {self._process.returncode}")
        return json.loads(said)


def meet() -> None:
    """In the child: say that it has started, and wait for the others."""
    print(STARTED, flush=True)  # noqa: T201 (this is how parent and child speak)
    sys.stdin.readline()


def resident_mib() -> float:
    """Memory of this process (MiB); where the system does not tell, its peak so far."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return _peak_mib()
    return pages * os.sysconf("SC_PAGE_SIZE") / MEBIBYTE


def _peak_mib() -> float:
    try:
        import resource
    except ImportError:  # Windows
        return float("nan")
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MEBIBYTE
