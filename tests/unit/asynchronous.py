"""Coroutines in plain tests: each runs in a loop of its own and cannot hang."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")
LIMIT = 150.0


def run(work: Coroutine[Any, Any, _T]) -> _T:
    """Run to the end; fails after `LIMIT` seconds."""

    async def bounded() -> _T:
        async with asyncio.timeout(LIMIT):
            return await work

    return asyncio.run(bounded())


async def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until something is true; fails after `seconds`."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event to offer
            await asyncio.sleep(0.005)


async def turns(count: int = 5) -> None:
    """Let what is ready in the loop run."""
    for _ in range(count):
        await asyncio.sleep(0)
