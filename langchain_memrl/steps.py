"""Write a call once, offer it twice: blocking and awaitable.

A verb is a generator. It yields the texts it needs vectors for, gets their unit vectors back, and
returns its result. The blocking form embeds in the calling thread. The awaitable form awaits the
embedder and runs everything else in the bank's own threads, so that no disk access ever happens on
an event loop.
"""

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from concurrent.futures import Executor
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from langchain_memrl.store.base import Vector

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=Callable[..., Any])
S = TypeVar("S", bound="Steppable")

Steps = Generator[Sequence[str], list[Vector], R]


class TextEmbedder(Protocol):
    """Turns texts into checked unit vectors."""

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One unit vector of shape (d,) per text."""

    def aembed(self, texts: Sequence[str]) -> Awaitable[list[Vector]]:
        """The same, awaited."""


class Steppable(Protocol):
    """What a class needs for its verbs: an embedder and threads of its own."""

    @property
    def embedder(self) -> TextEmbedder:
        """Answers what the steps yield."""

    @property
    def threads(self) -> Executor:
        """Runs the steps of awaitable calls."""


def blocking(verb: Callable[Concatenate[S, P], Steps[R]]) -> Callable[Concatenate[S, P], R]:
    """The plain form of a verb."""

    @functools.wraps(verb)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        steps = verb(self, *args, **kwargs)
        vectors = None
        while True:
            done, value = _advance(steps, vectors)
            if done:
                result: R = value
                return result
            vectors = self.embedder.embed(value)

    return _signed(call, verb)


def awaitable(
    verb: Callable[Concatenate[S, P], Steps[R]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """The async form of a verb. Cancelling it does not undo a write already handed over."""

    @functools.wraps(verb)
    async def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        steps = verb(self, *args, **kwargs)
        loop = asyncio.get_running_loop()
        vectors = None
        while True:
            done, value = await loop.run_in_executor(self.threads, _advance, steps, vectors)
            if done:
                result: R = value
                return result
            vectors = await self.embedder.aembed(value)

    return _signed(call, verb)


def _advance(steps: Steps[Any], vectors: list[Vector] | None) -> tuple[bool, Any]:
    """Run to the next request for vectors, or to the end: (finished, texts or result)."""
    try:
        return False, steps.send(vectors)  # type: ignore[arg-type]
    except StopIteration as end:
        return True, end.value


def _signed(call: C, verb: Callable[..., Any]) -> C:
    """Show the verb's own parameters, and what the call returns instead of its steps."""
    signature = inspect.signature(verb)
    (result,) = signature.return_annotation.__args__[-1:] or (Any,)
    vars(call)["__signature__"] = signature.replace(return_annotation=result)
    call.__annotations__ = {**verb.__annotations__, "return": result}
    return call
