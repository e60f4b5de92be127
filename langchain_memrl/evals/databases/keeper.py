"""Runs a server for as long as the process that started this one lives.

Usage: `python keeper.py FOLDER SERVER ARGUMENT ...`.

The owner holds the other end of this program's standard input. When the owner ends, however it
ends, the pipe is closed: then the server is stopped and its folder removed.
"""

import select
import shutil
import signal
import subprocess
import sys

GRACE = 5.0
"""Seconds a server has to stop by itself; nothing in it is worth more."""
LOOK = 0.5


def keep(folder: str, command: list[str]) -> int:
    """Run the server until it or the owner ends.

    Args:
        folder: The server's folder, removed afterwards.
        command: The server and its arguments.

    Returns:
        What the server returned; 0 where the owner ended first.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # goes through `finally`
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603 - the owner's own command
    try:
        while (ended := server.poll()) is None:
            if select.select([sys.stdin], [], [], LOOK)[0]:
                return 0
        return ended
    finally:
        server.terminate()
        try:
            server.wait(GRACE)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(keep(sys.argv[1], sys.argv[2:]))
