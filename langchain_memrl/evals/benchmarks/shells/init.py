"""The first process of a try's own system: it runs commands, one after the other, and ends last.

Requests and answers are lines of JSON on a socket to the owner. When this process ends, the kernel
ends all others of its namespace.
"""

import json
import os
import select
import signal
import socket
import time
from dataclasses import dataclass, field
from typing import Any, NoReturn

ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "HOSTNAME": "machine",
}
SHELL = "/bin/bash"
PIECE = 65536
EXPENDABLE = b"500"
"""`oom_score_adj` of a command: where memory runs out, it is ended and not this process."""


def send(channel: socket.socket, **message: Any) -> None:
    """Send one line."""
    channel.sendall(json.dumps(message).encode() + b"\n")


@dataclass(slots=True, eq=False)
class Output:
    """What a command writes; read to the end even where nobody wants it.

    Attributes:
        source: Where it is read.
        most: The bytes to keep.
        kept: The beginning.
        lost: How many bytes more there were.
    """

    source: int
    most: int
    kept: bytearray = field(default_factory=bytearray)
    lost: int = 0

    def take(self) -> bool:
        """Read what is there; whether more can come."""
        try:
            piece = os.read(self.source, PIECE)
        except BlockingIOError:
            return True
        room = max(0, self.most - len(self.kept))
        self.kept += piece[:room]
        self.lost += len(piece[room:])
        return bool(piece)


class Init:
    """Runs what the owner asks for until it ends.

    Args:
        channel: The socket to the owner.
    """

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._outputs: list[Output] = []
        self._ended: dict[int, int] = {}
        self._nothing = os.open("/dev/null", os.O_RDWR)
        self._woken, waking = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(waking, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(waking, warn_on_full_buffer=False)

    def serve(self) -> None:
        """Answer until the owner ends."""
        buffered = b""
        while True:
            while b"\n" not in buffered:
                if self._channel in self._wait(None, self._channel):
                    piece = self._channel.recv(PIECE)
                    if not piece:
                        return
                    buffered += piece
            line, _, buffered = buffered.partition(b"\n")
            send(self._channel, **self._run(**json.loads(line)))

    def _run(self, script: str, seconds: float, most: int) -> dict[str, Any]:
        """Run a command in a fresh shell until that ends; out of time, it is left to itself."""
        reading, writing = os.pipe()
        try:
            shell = os.fork()
        except OSError as error:
            os.close(reading)
            os.close(writing)
            return {"code": 254, "output": f"bash: fork: {error.strerror}\n"}
        if shell == 0:
            self._become_shell(script, writing)
        os.close(writing)
        os.set_blocking(reading, False)
        output = Output(reading, most)
        self._outputs.append(output)
        self._ended.clear()
        end = time.monotonic() + seconds
        while shell not in self._ended and time.monotonic() < end:
            self._wait(end - time.monotonic())
        # Once for what a pipe can hold, once for its end.
        if output in self._outputs and not (output.take() and output.take()):
            self._close(output)
        output.most = 0
        return {
            "code": self._ended.get(shell),
            "output": output.kept.decode(errors="replace"),
            "lost": output.lost,
            "going_on": output in self._outputs,
        }

    def _wait(self, seconds: float | None, *others: Any) -> list[Any]:
        """Wait for an output, an ended process or something else; which of the others are ready."""
        sources = {output.source: output for output in self._outputs}
        left = None if seconds is None else max(0.0, seconds)
        ready, _, _ = select.select([self._woken, *sources, *others], [], [], left)
        for output in (sources[one] for one in ready if one in sources):
            if not output.take():
                self._close(output)
        if self._woken in ready:
            os.read(self._woken, PIECE)
            self._bury()
        return [one for one in ready if one in others]

    def _close(self, output: Output) -> None:
        os.close(output.source)
        self._outputs.remove(output)

    def _bury(self) -> None:
        """Take note of every process that has ended, orphans included."""
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if process == 0:
                return
            self._ended[process] = os.waitstatus_to_exitcode(status)

    def _become_shell(self, script: str, writing: int) -> NoReturn:
        """Be the command: in a session of its own, with nothing open but its output."""
        try:
            os.setsid()
            for number, source in enumerate((self._nothing, writing, writing)):
                os.dup2(source, number)
            os.closerange(3, os.sysconf("SC_OPEN_MAX"))
            os.write(os.open("/proc/self/oom_score_adj", os.O_WRONLY), EXPENDABLE)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            os.execve(SHELL, ["bash", "-c", script], ENVIRONMENT)  # noqa: S606
        except Exception as error:
            os.write(2, f"{SHELL}: {error}\n".encode())
        finally:
            os._exit(127)
