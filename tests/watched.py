"""A store that tells what was asked of it, waits for the event loop, or dies around a call."""

import threading


class CrashError(Exception):
    """The process died here, as far as the bank is concerned."""


class WatchedStore:
    """Wraps a `MemoryStore`; `calls` lists (method, thread) of everything that was asked.

    `before` and `after` map a method to a function that runs around every call of it, in the
    calling thread; `after` runs when the effect is committed.
    """

    def __init__(self, store):
        self._store = store
        self.calls = []
        self.before = {}
        self.after = {}

    def __getattr__(self, name):
        method = getattr(self._store, name)
        if name == "check_open":  # looks at no database and takes no lock
            return method

        def watched(*args, **kwargs):
            self.calls.append((name, threading.get_ident()))
            self.before.get(name, _nothing)()
            result = method(*args, **kwargs)
            self.after.get(name, _nothing)()
            return result

        return watched

    @property
    def threads(self):
        """The threads that reached the store."""
        return {thread for _, thread in self.calls}

    def count(self, name):
        """How often a method was asked."""
        return sum(called == name for called, _ in self.calls)


def crash_once(*errors):
    """A function that raises each of these errors once (`CrashError` where none is given)."""
    left = list(errors or (CrashError("killed"),))

    def die():
        if left:
            raise left.pop(0)

    return die


def _nothing():
    pass
