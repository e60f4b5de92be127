"""Runs a server for as long as the process that started this one lives.

Usage: `python keeper.py FOLDER`, with the commands as JSON in the first line of the standard input:
what sets the server up, then the server. The owner keeps the other end open. When the owner ends,
however it ends, the pipe is closed: then the server is stopped and its folder removed.
"""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence

GRACE = 5.0
"""Seconds a server has to stop by itself; nothing in it is worth more."""
LOOK = 0.2


def keep(folder: str, commands: Sequence[Sequence[str]]) -> int:
    """Run one command after the other until one fails, the last one ends or the owner ends.

    Args:
        folder: The server's folder, removed afterwards.
        commands: What sets it up, then the server.

    Returns:
        What the last command returned; 0 where the owner ended first.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # goes through `finally`
    try:
        for command in commands:
            code = _watch(command)
            if code != 0:
                return code or 0
        return 0
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _watch(command: Sequence[str]) -> int | None:
    """What a command returned; None where the owner ended first."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)  # noqa: S603
    try:
        while (code := child.poll()) is None:
            if select.select([sys.stdin], [], [], LOOK)[0]:
                return None
        return code
    finally:
        _end(child)


def _end(child: "subprocess.Popen[bytes]") -> None:
    """Stop a command and what it started."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        if child.poll() is None:
            _signal(child, sign)
            try:
                child.wait(GRACE)
            except subprocess.TimeoutExpired:
                continue


def _signal(child: "subprocess.Popen[bytes]", sign: signal.Signals) -> None:
    try:
        os.killpg(child.pid, sign)
    except ProcessLookupError:
        return


if __name__ == "__main__":
    sys.exit(keep(sys.argv[1], json.loads(sys.stdin.readline() or "[]")))
