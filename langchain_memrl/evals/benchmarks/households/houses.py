"""Where games are played: engines in processes of their own, lent to one try at a time."""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType
from typing import Any, NamedTuple, Self

from langchain_memrl.errors import ConfigError, MemRLError
from langchain_memrl.evals.benchmarks.children import module_path
from langchain_memrl.evals.benchmarks.households import engine
from langchain_memrl.evals.benchmarks.households.games import Game

NO_ENGINE = 'the engine of ALFWorld is missing: pip install "langchain-memrl[bench-alfworld]"'
PACKAGES = ("textworld", "fast-downward-textworld")
LIMIT = 120.0
"""Seconds an engine may take for a reply; the first one of a game takes about a second."""
SAID = 500
"""Characters of an engine's last words in an error."""


class Seen(NamedTuple):
    """What a game shows.

    Attributes:
        text: What it says.
        commands: What can be done now, in alphabetical order.
        won: Whether the goal is reached.
    """

    text: str
    commands: tuple[str, ...]
    won: bool


class House:
    """An engine in a process of its own. It ends with its owner, however that ends.

    Args:
        limit: Seconds it may take for a reply.
    """

    def __init__(self, limit: float = LIMIT) -> None:
        self._limit = limit
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `close`
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", engine.__name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, "PYTHONPATH": module_path()},
            start_new_session=True,
            text=True,
            encoding="utf-8",
        )

    def start(self, game: Game) -> Seen:
        """Begin a game anew.

        Raises:
            MemRLError: The engine failed.
        """
        return self._ask({"start": game.parts})

    def do(self, command: str) -> Seen:
        """Carry out a command; what is not possible changes nothing.

        Raises:
            MemRLError: The engine failed.
        """
        return self._ask({"do": command})

    def close(self) -> None:
        """End the engine."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            if pipe is not None:
                with suppress(OSError):  # what was on its way to an engine that had ended before
                    pipe.close()

    def _ask(self, request: dict[str, Any]) -> Seen:
        pipe_in, pipe_out = self._process.stdin, self._process.stdout
        if pipe_in is None or pipe_out is None:
            raise MemRLError("the engine has no pipes")
        timer = threading.Timer(self._limit, self._process.kill)
        began = time.monotonic()
        timer.start()
        try:
            pipe_in.write(json.dumps(request) + "\n")
            pipe_in.flush()
            line = pipe_out.readline()
        except OSError:
            line = ""
        finally:
            timer.cancel()
        if not line:
            late = time.monotonic() - began >= self._limit
            slow = f" after {self._limit:g} s without a reply" if late else ""
            raise MemRLError(f"TextWorld's engine ended{slow}: {self._last_words() or 'no word'}")
        reply = json.loads(line)
        if "error" in reply:
            raise MemRLError(f"TextWorld's engine failed: {reply['error'][:SAID]}")
        return Seen(reply["text"], tuple(reply["commands"]), reply["won"])

    def _last_words(self) -> str:
        self._log.seek(0)
        return " ".join(self._log.read().decode(errors="replace").split())[-SAID:]


class Houses:
    """As many engines as there are tries at a time, for as long as the `with` block lasts."""

    def __init__(self) -> None:
        self._free: list[House] = []
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        """Nothing is started before it is needed."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End all engines that nobody uses any more."""
        with self._lock:
            while self._free:
                self._free.pop().close()

    @contextmanager
    def lend(self) -> Iterator[House]:
        """An engine that nobody else uses meanwhile. One that failed is not used again."""
        with self._lock:
            house = self._free.pop() if self._free else None
        house = house or House()
        try:
            yield house
        except BaseException:
            house.close()
            raise
        with self._lock:
            self._free.append(house)


def engine_versions() -> dict[str, str]:
    """The versions of the engine's packages.

    Raises:
        ConfigError: One is not installed.
    """
    try:
        return {name: version(name) for name in PACKAGES}
    except PackageNotFoundError as error:
        raise ConfigError(NO_ENGINE) from error
