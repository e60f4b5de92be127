"""A process that has imported the big libraries once and forks itself for every try.

Started by `ProgramRunner`. The first line of its standard input says in JSON what to do; it then
tells in one line what it found, and serves a socket in its folder, one connection per try. It ends
when the standard input is closed, so however its owner ends, and removes its folder.
"""

import gc
import importlib
import json
import os
import platform
import random
import select
import shutil
import signal
import socket
import sys
from functools import partial
from pathlib import Path
from typing import Any

from langchain_memrl.evals.benchmarks.programs.examining import examine
from langchain_memrl.evals.benchmarks.programs.sandbox import (
    LIMITS,
    NAMESPACES,
    WORK,
    Limits,
    leave_after,
    run_apart,
    works,
)

SOCKET = "sock"


def main() -> None:
    """Get ready, then serve until the owner ends."""
    told = json.loads(sys.stdin.readline())
    folder = Path(told["folder"])
    limits = Limits(*told["limits"])
    try:
        (folder / WORK).mkdir(mode=0o777)
        (folder / WORK).chmod(0o777)
        # before the imports: what has threads cannot leave the machine's namespaces
        kind = next((kind for kind in told["kinds"] if works(kind, folder)), "")
        found = {
            "kind": kind,
            "imported": [name for name in told["modules"] if _imported(name)],
            "python": platform.python_version(),
        }
        gc.freeze()  # a fork then shares what was imported, for longer
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(folder / SOCKET))
            (folder / SOCKET).chmod(0o600)
            listener.listen(64)
            print(json.dumps(found), flush=True)  # noqa: T201 - read by the owner
            if kind:
                _serve(listener, kind, folder, limits)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _imported(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


def _serve(listener: socket.socket, kind: str, folder: Path, limits: Limits) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how they ended
    while True:
        ready = select.select([listener, sys.stdin], [], [])[0]
        if sys.stdin in ready:
            return
        connection, _ = listener.accept()
        if os.fork() == 0:
            leave_after(partial(_try, listener, connection, kind, folder, limits))
        connection.close()


def _try(
    listener: socket.socket, connection: socket.socket, kind: str, folder: Path, limits: Limits
) -> None:
    """One try, in a fork of its own."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    listener.close()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    run_apart(lambda: _examine(connection), kind, folder, limits)


def _examine(connection: socket.socket) -> None:
    """As alike as possible from try to try: libraries draw the same random numbers."""
    random.seed(0)
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(0)
    examine(connection)


KINDS = (NAMESPACES, LIMITS)

if __name__ == "__main__":
    main()
