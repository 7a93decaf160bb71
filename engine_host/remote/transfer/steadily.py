"""Work over a connection that may break: it goes on by itself once the connection stands again."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.remote.hosts import RemoteHostState
from engine_host.remote.hosts import RemoteHosts

_Result = TypeVar("_Result")
_LONGEST_WAIT = 600.0
"""Seconds that a broken connection is waited for."""
_LOOK = 0.5
_MOST_TRIES = 20


async def steadily(
    hosts: RemoteHosts,
    name: str,
    work: Callable[[], Awaitable[_Result]],
    waits: Callable[[], None],
    longest: float = _LONGEST_WAIT,
) -> _Result:
    """Return what `work` does, which is begun again after each loss; `waits` is told of each.

    Raises what it raises; HostError(ssh_lost) where nobody wants the connection any more, or it does not come
    back; and where it waits for a person, the reason of that.
    """
    for _ in range(_MOST_TRIES):
        try:
            return await work()
        except HostError as error:
            if error.reason is not Reason.SSH_LOST:
                raise
            waits()
            if not await _again(hosts, name, longest):
                raise
    return await work()


async def _again(hosts: RemoteHosts, name: str, longest: float) -> bool:
    """Wait until the connection stands again; False where it took too long. Raises HostError as above."""
    end = time.monotonic() + longest
    while time.monotonic() < end:
        if name not in hosts.book.all or not hosts.book.get(name).wanted:
            raise HostError(
                Reason.SSH_LOST,
                tr("{name} was disconnected in the middle of it.", name=name),
                cause=tr("Somebody disconnected or removed it while this went on."),
                fix=Fix(
                    text="Connect it and do the same once more: it goes on from what is there.",
                    command=f"sndr host connect {name}",
                ),
            )
        shown = hosts.shown(name)
        if shown.state is RemoteHostState.FAILED and shown.problem is not None:
            raise HostError.from_problem(shown.problem)
        if shown.state is RemoteHostState.CONNECTED:
            try:
                if await hosts.connection(name).stands():
                    return True
            except HostError:
                pass
        await asyncio.sleep(_LOOK)
    return False
