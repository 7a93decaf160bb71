"""One request's wait for a model that is being loaded, with pings where its client reads a stream."""

import asyncio
import time
from typing import Any

from starlette.types import Receive, Send

from engine_host.core import sse
from engine_host.core.errors import HostError
from engine_host.gateway import error_answers as faults
from engine_host.gateway.loading.loader import Load
from engine_host.gateway.openai.bodies import ClientGoneError
from engine_host.gateway.responses.answer import Frame
from engine_host.gateway.responses.failures import FailureTold
from engine_host.gateway.streaming.beginning import EVENTS
from engine_host.protocol.errors import Problem, Reason

PING = b": loading" + sse.FRAME_END
NO_ROOM = "no_room"
LOADING = "loading"
_RETRY = 5


class LoadWait:
    """One request's wait for a model; `begun` once the headers of its stream are sent."""

    def __init__(self, name: str, request_id: str, *, pings: bool, limit: float, note: float) -> None:
        """`pings`: comments may be sent meanwhile, from `note` seconds on; `limit` in seconds."""
        self.begun = False
        self._name = name
        self._request_id = request_id
        self._pings = pings
        self._limit = limit
        self._note = note
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """End the wait: somebody cancelled the request."""
        self._stopped.set()

    async def wait(self, load: Load, receive: Receive, send: Send) -> None:
        """Return once the model answers.

        Raises EndpointError where it will not, or not in time, and ClientGoneError.
        """
        end = time.monotonic() + self._limit
        gone = asyncio.ensure_future(_gone(receive))
        stopped = asyncio.ensure_future(_set(self._stopped))
        try:
            while not load.done.done():
                left = end - time.monotonic()
                if left <= 0:
                    raise loading(self._name)
                step = min(self._note, left) if self._pings else left
                await asyncio.wait(
                    {load.done, gone, stopped}, timeout=step, return_when=asyncio.FIRST_COMPLETED
                )
                if gone.done():
                    raise ClientGoneError
                if stopped.done():
                    raise faults.cancelled()
                if self._pings and not load.done.done():
                    await self._ping(send)
        finally:
            gone.cancel()
            stopped.cancel()
            await asyncio.gather(gone, stopped, return_exceptions=True)
        if load.done.cancelled():
            raise faults.closing()
        error = load.done.exception()
        if isinstance(error, HostError):
            raise load_failed(self._name, error.problem)
        if error is not None:
            raise faults.internal()

    async def _ping(self, send: Send) -> None:
        if not self.begun:
            self.begun = True
            headers = [*EVENTS, (b"x-request-id", self._request_id.encode())]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": PING, "more_body": True})

    async def fail(self, send: Send, fault: faults.EndpointError, path: str, body: dict[str, Any]) -> None:
        """Send the last frame of a stream that has begun, in the form that its client reads."""
        if path == "/v1/responses":
            name = "resp_" + self._request_id.removeprefix("req_")
            frame = Frame(name, self._name, int(time.time()), body)
            told = FailureTold(frame).failure(fault, self._request_id)
        else:
            told = fault.frame(faults.form_of(path), self._request_id)
        await send({"type": "http.response.body", "body": told, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _set(event: asyncio.Event) -> None:
    await event.wait()


async def _gone(receive: Receive) -> None:
    """Return when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


def loading(name: str) -> faults.EndpointError:
    """The model is being loaded, and the request may not wait, or not that long; the load goes on."""
    return faults.EndpointError(
        503,
        LOADING,
        f"{name} is being loaded. Try again in {_RETRY}s; the load goes on meanwhile.",
        Reason.ENGINE_NOT_READY,
        retry_after=_RETRY,
    )


def load_failed(name: str, problem: Problem) -> faults.EndpointError:
    """A model could not be loaded: the engine's own reason, or that there is no room for it."""
    said = problem.evidence.get("code")
    code = NO_ROOM if said == NO_ROOM else problem.reason.value
    again = problem.evidence.get("retry_after")
    return faults.EndpointError(
        503,
        code,
        f"{name} could not be loaded. {problem.sentence()}",
        problem.reason,
        retry_after=again if isinstance(again, int) else None,
    )


def wait_limit(prefer: str | None, limit: float) -> float:
    """Return the seconds that a request may wait: as `Prefer: wait=N` (RFC 7240) says, at most `limit`."""
    for part in (prefer or "").split(","):
        name, _, value = part.strip().partition("=")
        digits = value.strip().strip('"')
        if name.strip().lower() == "wait" and digits.isascii() and digits.isdigit() and len(digits) < 8:
            return min(float(digits), limit)
    return limit
