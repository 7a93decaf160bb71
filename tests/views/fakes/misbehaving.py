"""Ways in which a FAKE host answers as no host should: with errors, slowly, with garbage, not at all."""

import asyncio
import json
from collections.abc import Awaitable, Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from engine_host.protocol.operations import table as ops

Answering = Callable[[Send], Awaitable[None]]
# Without them there is no connection whose answers could be wrong.
_RIGHT = (ops.VERSION.path, ops.EVENTS.path)
SLOW = 0.8
"""Seconds that a slow host takes for each answer."""


def _answer(status: int, body: bytes, kind: str = "application/json") -> Answering:
    async def answer(send: Send) -> None:
        headers = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return answer


async def _cut(send: Send) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"4000")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b'{"seq": 1, "mod', "more_body": True})
    # The server closes the connection, for the rest never comes.
    raise ConnectionAbortedError("cut off by the test")


async def _silent(_send: Send) -> None:
    await asyncio.Event().wait()


_PROBLEM = {"reason": "internal", "message": "The host made a mistake.", "cause": "A test wants it."}
WAYS: dict[str, Answering] = {
    "errors": _answer(500, json.dumps({"problem": _PROBLEM, **_PROBLEM}).encode()),
    "a page of a proxy": _answer(502, b"<html><body>Bad Gateway</body></html>", "text/html"),
    "refused": _answer(404, b'{"detail": "Not Found"}'),
    "garbage": _answer(200, bytes(range(256)) * 8),
    "another type": _answer(200, b"[1, 2, {}]"),
    "nothing in it": _answer(200, b"{}"),
    "no bytes": _answer(200, b""),
    "cut off": _cut,
    "silent": _silent,
}
"""How each answer is wrong; `slowly` and `gone` are not of the answer alone."""


def misbehaving(own: ASGIApp, way: str) -> ASGIApp:
    """Return an app that keeps the connection up and answers everything else in this way."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] in _RIGHT:
            await own(scope, receive, send)
        elif way == "slowly":
            await asyncio.sleep(SLOW)
            await own(scope, receive, send)
        else:
            await receive()
            await WAYS[way](send)

    return app
