"""Systems to try tasks on, as their owner sees them."""

import json
import os
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from langchain_memrl.errors import ConfigError, MemRLError
from langchain_memrl.evals.benchmarks.children import module_path
from langchain_memrl.evals.benchmarks.shells import launcher
from langchain_memrl.evals.benchmarks.shells.isolation import Limits

LIMIT = 20.0
"""Seconds per command, as in the benchmark."""
SLACK = 30.0
"""Seconds after which a system that does not answer is given up."""
MOST = 65536
"""Bytes of an output that are kept."""
PIECE = 65536
NOT_HERE = (
    "the operating-system tasks need a Linux machine and the root account: each try gets "
    "namespaces, an overlay in memory and a control group of its own"
)


@dataclass(frozen=True, slots=True)
class Result:
    """What a command gave.

    Attributes:
        code: Its exit code; None: it did not end in time, and was left running.
        output: What it wrote to both its outputs, in the order written; the beginning of it.
        lost: How many bytes more there were.
        going_on: Whether something that it started can still write there.
    """

    code: int | None
    output: str = ""
    lost: int = 0
    going_on: bool = False


class Machines:
    """Makes systems over one root, for as long as the `with` block lasts.

    Args:
        root: The folder with the system's files; it stays as it is.
        limits: What each try may use.

    Raises:
        ConfigError: On entry, where this machine cannot isolate a try.
    """

    def __init__(self, root: Path, limits: Limits | None = None) -> None:
        self._request = json.dumps(
            {"root": str(root.resolve()), "limits": asdict(limits or Limits())}
        ).encode()
        self._lock = threading.Lock()
        self._launcher: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None

    def __enter__(self) -> Self:
        """Start what starts them, and see whether a system can be made at all."""
        if not sys.platform.startswith("linux") or os.geteuid() != 0:
            raise ConfigError(NOT_HERE)
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._launcher = subprocess.Popen(  # noqa: S603
                [sys.executable, "-P", "-m", launcher.__name__],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": module_path()},
            )
        try:
            with self.open():
                pass
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop it."""
        self._stop()

    def open(self) -> "Machine":
        """A new system; close it, or use it as a `with` block."""
        ours, theirs = socket.socketpair()
        with theirs:
            if self._requests is None:
                raise MemRLError("systems are made inside the `with` block only")
            with self._lock:
                try:
                    socket.send_fds(self._requests, [self._request], [theirs.fileno()])
                except OSError as error:
                    ours.close()
                    raise MemRLError(f"what starts the systems has ended ({error})") from error
        return Machine(ours)

    def _stop(self) -> None:
        if self._requests is not None:
            self._requests.close()
            self._requests = None
        if self._launcher is not None:
            self._launcher.wait()
            self._launcher = None


class Machine:
    """One system. It ends with everything in it when it is closed or this process ends.

    Args:
        channel: The socket to its first process.

    Raises:
        ConfigError: The kernel refused to make it.
        MemRLError: It did not start.
    """

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._buffered = b""
        try:
            refused = self._receive(SLACK).get("refused")
            if refused:
                raise ConfigError(f"{NOT_HERE}; here the kernel refuses: {refused}")
        except BaseException:
            channel.close()
            raise

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it with every process in it; its files are gone too."""
        self.close()

    def close(self) -> None:
        """End it, and wait until nothing of it is left."""
        with self._channel, suppress(OSError):
            self._channel.shutdown(socket.SHUT_WR)
            self._channel.settimeout(SLACK)
            while self._channel.recv(PIECE):
                pass

    def run(self, script: str, *, seconds: float = LIMIT) -> Result:
        """Run a script in a fresh shell, as root, in the folder `/`.

        Args:
            script: What `bash -c` gets.
            seconds: How long to wait for it.

        Raises:
            MemRLError: The system is gone; that is not the script's fault.
        """
        request = {"script": script.replace("\0", ""), "seconds": seconds, "most": MOST}
        try:
            self._channel.sendall(json.dumps(request).encode() + b"\n")
        except OSError as error:
            raise MemRLError(f"the system of this try is gone ({error})") from error
        return Result(**self._receive(seconds + SLACK))

    def _receive(self, seconds: float) -> dict[str, Any]:
        self._channel.settimeout(seconds)
        try:
            while b"\n" not in self._buffered:
                piece = self._channel.recv(PIECE)
                if not piece:
                    raise MemRLError("the system of this try ended by itself")
                self._buffered += piece
        except OSError as error:
            raise MemRLError(f"the system of this try does not answer ({error})") from error
        line, _, self._buffered = self._buffered.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found
