"""One commit for all threads that wait: a durable commit waits for the disk, whatever it holds.

Who comes while a commit is under way joins the next one. Every call still returns only after its
own commit, and a call that fails takes none of the others with it.
"""

import copy
import threading
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from langchain_memrl.errors import MemRLError, StoreBusyError
from langchain_memrl.store.embedded.connection import SqliteConnection

R = TypeVar("R")

Work = Callable[[SqliteConnection], Any]


class _Job:
    """One call's part of a commit."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.is_done = False
        self.result: Any = None
        self.error: Exception | None = None

    def run(self, db: SqliteConnection) -> None:
        """Do it, or nothing of it.

        Raises:
            Exception: Something else than this package's own refusals: the transaction is in doubt.
        """
        self.error = None
        db.execute("SAVEPOINT job")
        try:
            self.result = self._work(db)
        except MemRLError as error:
            self.error = error
            db.execute("ROLLBACK TO job")
        db.execute("RELEASE job")


class Commits:
    """Runs calls of several threads in common transactions."""

    def __init__(self, transaction: Callable[[], AbstractContextManager[SqliteConnection]]) -> None:
        self._transaction = transaction
        self._turn = threading.Lock()
        self._waiting: deque[_Job] = deque()

    def run(self, work: Callable[[SqliteConnection], R]) -> R:
        """Do the work in a transaction and return its result after the commit.

        Args:
            work: Changes the database and nothing else; it may be called again after a rollback.
        """
        job = _Job(work)
        self._waiting.append(job)
        with self._turn:
            if not job.is_done:
                jobs = [self._waiting.popleft() for _ in range(len(self._waiting))]
                self._commit(jobs if job in jobs else [job, *jobs])
        if job.error is not None:
            raise job.error
        result: R = job.result
        return result

    def _commit(self, jobs: list[_Job]) -> None:
        """Commit the jobs together; where that fails, each alone, with its own error."""
        try:
            with self._transaction() as db:
                for job in jobs:
                    job.run(db)
        except Exception as error:
            if len(jobs) > 1 and not isinstance(error, StoreBusyError):
                for job in jobs:
                    self._commit([job])
                return
            for job in jobs:
                job.error = copy.copy(error) if len(jobs) > 1 else error  # each raises its own
        for job in jobs:
            job.is_done = True
