"""Ask the engine host of a connected machine, over its forwarded socket, by operations of the control API."""

import asyncio
from typing import Any, TypeVar
from urllib.parse import urlencode

from pydantic import BaseModel, ValidationError

from engine_host.core.errors import HostError
from engine_host.core.outside import json_text
from engine_host.gateway.upstream import UpstreamLostError, fetch
from engine_host.protocol.base import Command, Query
from engine_host.protocol.errors import ErrorAnswer, Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.operations.definition import Operation
from engine_host.protocol.remote.hosts import RemoteMode
from engine_host.remote.engine_host_there import control_target
from engine_host.remote.hosts import RemoteHosts

_LOOKED_FOR = 20.0
"""Seconds for the engine host of a machine that has just been connected."""
_Answer = TypeVar("_Answer", bound=BaseModel)


async def answers(hosts: RemoteHosts, name: str) -> bool:
    """Return True if the engine host there answers; one that is being looked for is waited for.

    Raises HostError: not_found, ssh_lost.
    """
    end = asyncio.get_running_loop().time() + _LOOKED_FOR
    while True:
        kept, there = hosts.connection(name).host, hosts.there(name)
        known = there.reachable or there.problem is not None or kept.mode is not RemoteMode.ENGINE_HOST
        if known or asyncio.get_running_loop().time() > end:
            return there.reachable
        await asyncio.sleep(0.1)


async def ask(
    hosts: RemoteHosts,
    name: str,
    operation: Operation[Any, _Answer],
    asked: Command | Query | None = None,
    **path: str,
) -> _Answer:
    """Return what the engine host there answers. Raises HostError: its own, host_unreachable, ssh_lost."""
    there, connection = hosts.there(name), hosts.connection(name)
    if not there.reachable:
        raise HostError.from_problem(there.problem) if there.problem is not None else _silent(name, "")
    target = control_target(connection, there.token)
    where, body = operation.path_for(path), b""
    if isinstance(asked, Query):
        where += f"?{urlencode(asked.model_dump(mode='json', exclude_defaults=True))}"
    elif asked is not None:
        body = asked.body().encode()
    try:
        async with asyncio.timeout(max(30.0, operation.seconds)):
            status, answer = await fetch(target, operation.method, where, body)
        json_text.refuse_huge(answer)
        if status >= 400:
            raise HostError.from_problem(ErrorAnswer.model_validate_json(answer).error)
        return operation.answer.model_validate_json(answer)
    except (UpstreamLostError, TimeoutError, ValueError, ValidationError) as error:
        raise _silent(name, str(error)[:300]) from error


def _silent(name: str, why: str) -> HostError:
    return HostError(
        Reason.HOST_UNREACHABLE,
        tr("The engine host on {name} does not answer.", name=name),
        cause=why or "It is being looked for, or it ended.",
        fix=Fix(text="Look for it anew; that says what is wrong.", command=f"sndr host connect {name}"),
    )
