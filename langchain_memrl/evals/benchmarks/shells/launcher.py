"""Starts a system of its own for each try: a small process that forks, so that a try costs little.

Usage: `python -m langchain_memrl.evals.benchmarks.shells.launcher`, with a socket as the standard
input. Each request on it comes with another socket, over which its try is served. A try ends when
the other end of its socket is closed, so also when the owner is killed.
"""

import json
import os
import select
import signal
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

from langchain_memrl.evals.benchmarks import kernel
from langchain_memrl.evals.benchmarks.shells import isolation
from langchain_memrl.evals.benchmarks.shells.groups import Group, make_group, unique_name
from langchain_memrl.evals.benchmarks.shells.init import Init, send
from langchain_memrl.evals.benchmarks.shells.isolation import Limits

LONGEST = 65536
"""Bytes of a request."""


def serve(requests: socket.socket) -> None:
    """Start a try for each request until the owner ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    while True:
        request, sockets, _, _ = socket.recv_fds(requests, LONGEST, 1)
        if not request:
            return
        with socket.socket(fileno=sockets[0]) as channel:
            if os.fork() == 0:
                requests.close()
                _child(keep, channel, json.loads(request))


def keep(channel: socket.socket, request: dict[str, Any]) -> None:
    """Start a system, wait until it or the owner ends, and leave nothing behind."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    limits = Limits(**request["limits"])
    group = Group(())
    try:
        group = make_group(unique_name(), processes=limits.processes, memory=limits.memory)
        kernel.unshare(kernel.NEW_PIDS)
        first = os.fork()
        if first == 0:
            _child(begin, channel, Path(request["root"]), limits, group)
        _watch(channel, first)
    except OSError as error:
        _refuse(channel, error)
    finally:
        group.remove()


def begin(channel: socket.socket, root: Path, limits: Limits, group: Group) -> None:
    """Be the first process of the new system."""
    kernel.end_with_parent()
    try:
        group.join()
        isolation.enter(root, limits)
    except OSError as error:
        _refuse(channel, error)
        return
    init = Init(channel)
    send(channel, ready=True)
    init.serve()


def _watch(channel: socket.socket, first: int) -> None:
    """Until the system ends, which it must when the owner closes its end."""
    ended = os.pidfd_open(first)
    poll = select.poll()
    poll.register(channel, select.POLLRDHUP)  # what there is to read is not ours, only the end
    poll.register(ended, select.POLLIN)
    poll.poll()
    with suppress(ProcessLookupError):
        os.kill(first, signal.SIGKILL)
    os.waitpid(first, 0)
    os.close(ended)


def _refuse(channel: socket.socket, error: OSError) -> None:
    """Say what the kernel did not allow, to an owner that may be gone."""
    with suppress(OSError):
        send(channel, refused=str(error))


def _child(work: Any, *arguments: Any) -> None:
    """Do the work of a forked process, and never come back from it."""
    code = 1
    try:
        work(*arguments)
        code = 0
    except Exception as error:
        os.write(2, f"a try's system failed: {error!r}\n".encode())
    finally:
        os._exit(code)


if __name__ == "__main__":
    from_owner = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    serve(from_owner)
