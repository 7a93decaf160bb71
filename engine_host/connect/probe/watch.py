"""A cancelled request as the host sees it: its state, and the counter of its engine."""

import asyncio
import time
from dataclasses import dataclass
from typing import Protocol

from engine_host.protocol.endpoint.connect import ProbeOutcome
from engine_host.protocol.engines import Engine, Request, RequestState
from engine_host.protocol.language import tr

_LIVE = {RequestState.LOADING, RequestState.WAITING, RequestState.PREFILL, RequestState.DECODE}
_PATIENCE = 12.0
"""Seconds for a request to end and for two readings of the engine after that; one comes every second."""
_LOOK = 0.1


class Host(Protocol):
    """The parts of the control API that tell it."""

    async def engines(self) -> tuple[Engine, ...]:
        """Return all engines."""
        ...

    async def requests(self) -> tuple[Request, ...]:
        """Return the live and the recent requests of all engines, newest first."""
        ...


@dataclass(frozen=True)
class Stopped:
    """The outcome of a cancel, in words too; `too_late` where the answer was complete before."""

    outcome: ProbeOutcome
    detail: str
    too_late: bool = False


async def wait_until_stopped(host: Host, agent: str, closed_at: float) -> Stopped:
    """Watch until a request has ended and its engine's counter stands still; `agent` is its User-Agent.

    Raises HostError when the host goes away.
    """
    end = time.monotonic() + _PATIENCE
    request: Request | None = None
    while time.monotonic() < end:
        request = await _find(host, agent)
        if request is not None and request.state not in _LIVE:
            break
        await asyncio.sleep(_LOOK)
    if request is None:
        return Stopped(
            ProbeOutcome.UNCLEAR, tr("The host does not list the request: another one answers there.")
        )
    if request.state in _LIVE:
        return Stopped(ProbeOutcome.FAILED, tr("The endpoint went on after the connection was closed."))
    if request.state is not RequestState.CANCELLED:
        return Stopped(
            ProbeOutcome.UNCLEAR, tr("The answer was complete before it could be cancelled."), True
        )
    return await _counter(host, request, closed_at, end)


async def _counter(host: Host, request: Request, closed_at: float, end: float) -> Stopped:
    """Read the engine's counter after a request has ended, until two readings are the same.

    The first may still grow: an engine notices an end between two steps, and counts what it did then.
    """
    ended = request.ended_at or closed_at
    delay = ended - closed_at
    after = (
        tr("{max} ms after the connection was closed", max=f"{max(0, delay) * 1000:.0f}")
        if delay < 10
        else tr("after that")
    )
    last: tuple[float, int] | None = None
    grown = 0
    while time.monotonic() < end:
        engine = next((one for one in await host.engines() if one.id == request.engine), None)
        now = engine.readings if engine is not None else None
        if engine is None:
            break
        if now is not None and now.at > ended and now.generated_tokens_total is not None:
            if last is None:
                last = (now.at, now.generated_tokens_total)
            elif now.at > last[0]:
                grown = now.generated_tokens_total - last[1]
                last = (now.at, now.generated_tokens_total)
                if grown == 0:
                    return Stopped(
                        ProbeOutcome.PASSED,
                        tr(
                            "Cancelled {after}; the engine then stopped generating, at {last} tokens.",
                            after=after,
                            last=last[1],
                        ),
                    )
        await asyncio.sleep(_LOOK)
    if not grown:
        return Stopped(
            ProbeOutcome.UNCLEAR,
            tr("Cancelled {after}; the engine reports no count of generated tokens.", after=after),
        )
    if any(one.state in _LIVE and one.engine == request.engine for one in await host.requests()):
        return Stopped(
            ProbeOutcome.UNCLEAR,
            tr(
                "Cancelled {after}; the engine still generates for other requests, so its token "
                "count proves nothing.",
                after=after,
            ),
        )
    return Stopped(
        ProbeOutcome.FAILED, tr("The engine went on: {grown} more tokens between two readings.", grown=grown)
    )


async def _find(host: Host, agent: str) -> Request | None:
    return next((request for request in await host.requests() if request.client == agent), None)
