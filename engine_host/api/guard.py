"""The door of the control API: the token, and commands that are done once however often they arrive."""

import asyncio
import secrets
from collections import OrderedDict

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine_host.api.answers import refused
from engine_host.protocol.errors import Problem, Reason

_REMEMBERED, _REMEMBERED_SIZE = 256, 16 << 20
"""Answers that are kept, and their bytes together."""


class TokenGuard:
    """Refuses whoever does not bring this start's token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request with the token pass."""
        if scope["type"] != "http":
            return
        given = dict(scope["headers"]).get(b"authorization", b"")
        if not secrets.compare_digest(given, self._expected):
            problem = Problem(
                reason=Reason.UNAUTHORIZED,
                message="The control token is missing or belongs to an earlier start of the host.",
                fix=None,
            )
            await refused(problem)(scope, receive, send)
            return
        await self._app(scope, receive, send)


class OnceGuard:
    """Answers a repeated `Idempotency-Key` with the first answer instead of doing the command again."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._answers: OrderedDict[str, asyncio.Future[list[Message]]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Do a command once."""
        key = dict(scope["headers"]).get(b"idempotency-key", b"").decode("latin-1")
        if not key or scope["method"] == "GET" or scope["path"].startswith("/openai/"):
            await self._app(scope, receive, send)
            return
        key = f"{scope['method']} {scope['path']} {key}"
        while known := self._answers.get(key):
            await asyncio.wait({known})
            if known.cancelled():
                continue  # The first try failed without an answer: this one is a try of its own.
            for message in known.result():
                await send(message)
            return
        answer: asyncio.Future[list[Message]] = asyncio.get_running_loop().create_future()
        self._answers[key] = answer
        messages: list[Message] = []

        async def keep(message: Message) -> None:
            messages.append(message)
            await send(message)

        try:
            await self._app(scope, receive, keep)
        except BaseException:
            # What failed without an answer may be tried again.
            if self._answers.get(key) is answer:
                del self._answers[key]
            answer.cancel()
            raise
        answer.set_result(messages)
        self._make_room()

    def _make_room(self) -> None:
        """Forget the oldest answers, never those of commands that are still at work."""
        done = {key: _size(answer.result()) for key, answer in self._answers.items() if answer.done()}
        count, size = len(done), sum(done.values())
        for key, its in done.items():
            if count <= _REMEMBERED and size <= _REMEMBERED_SIZE:
                return
            del self._answers[key]
            count, size = count - 1, size - its


def _size(messages: list[Message]) -> int:
    return sum(len(message.get("body", b"")) for message in messages)
