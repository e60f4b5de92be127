"""Processes for simulated units: no word of theirs on Ctrl-C, and none is left behind."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from typing import Any


class Processes:
    """A pool whose processes never see an interrupt: that is for the one that started them."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool

    def submit(self, call: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a function in one of them.

        A process that begins here inherits the blocked signal; an interrupt that comes meanwhile
        reaches this process a moment later.
        """
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return self._pool.submit(call, *arguments)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def processes(jobs: int) -> Iterator[Processes]:
    """So many processes. When the block ends by an error they end at once, in the middle of work.

    Args:
        jobs: How many.
    """
    context = get_context("spawn")
    theirs, ours = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(jobs, context, initializer=_end_with_parent, initargs=(theirs,))
    try:
        yield Processes(pool)
    except BaseException:
        ours.close()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        ours.close()
        theirs.close()


def _end_with_parent(told: Connection) -> None:
    """Leave no process behind when the one that started it is killed or has no more use for it."""
    parent = parent_process()

    def watch() -> None:
        wait([told] if parent is None else [told, parent.sentinel])
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
