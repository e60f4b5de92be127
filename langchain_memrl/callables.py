"""Calling what the user brought, sync or async, from either side."""

import asyncio
import contextvars
import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def call(function: Callable[[Any], Any], value: Any) -> Any:
    """Call a sync or async function from sync code; its context variables are the caller's."""
    result = function(value)
    if not inspect.isawaitable(result):
        return result

    async def finish() -> Any:
        return await result

    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(contextvars.copy_context().run, asyncio.run, finish()).result()


async def acall(function: Callable[[Any], Any], value: Any) -> Any:
    """Call a sync or async function from async code; a sync one never blocks the event loop."""
    native = getattr(function, "acall", None)
    if native is not None:
        return await native(value)
    if any(map(inspect.iscoroutinefunction, (function, type(function).__call__))):
        return await function(value)
    result = await asyncio.to_thread(function, value)
    return await result if inspect.isawaitable(result) else result
