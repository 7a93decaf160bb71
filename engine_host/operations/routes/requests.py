"""Real requests through the endpoint, sent inside the host: without port and key, else as a client's."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message

from engine_host.core import sse
from engine_host.core.outside import json_text

_LARGEST = 16 << 20


@dataclass
class Answer:
    """An answer as a client gets it."""

    status: int = 0
    body: bytes = b""
    pieces: int = 0
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def value(self) -> dict[str, Any]:
        """The object that the answer is; empty for what is none."""
        try:
            return json_text.parse_object(self.body)
        except ValueError:
            return {}

    @property
    def frames(self) -> list[dict[str, Any]]:
        """The objects in the frames of a stream."""
        found = []
        for payload in sse.payloads(self.body):
            try:
                found.append(json_text.parse_object(payload))
            except ValueError:
                continue
        return found

    @property
    def is_whole_stream(self) -> bool:
        """True for a stream that came to its end."""
        return sse.DONE.encode() in sse.payloads(self.body)

    def error(self) -> str:
        """The error in the answer, in words; empty where there is none."""
        for value in (self.value, *self.frames):
            told = value.get("error")
            if told:
                return str(told.get("message", told) if isinstance(told, dict) else told)[:500]
        return "" if 200 <= self.status < 300 else f"status {self.status}"


async def post(app: ASGIApp, path: str, body: dict[str, Any]) -> Answer:
    """Send one request and return its whole answer; when this is cancelled, so is the request."""
    sent, gone = False, asyncio.Event()
    answer = Answer()
    parts: list[bytes] = []

    async def receive() -> Message:
        nonlocal sent
        if not sent:
            sent = True
            return {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = {name.decode(): value.decode("latin-1") for name, value in message["headers"]}
        elif message.get("body") and sum(map(len, parts)) < _LARGEST:
            parts.append(message["body"])

    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "root_path": "",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json"), (b"user-agent", b"sndr routes cutover")],
    }
    try:
        await app(scope, receive, send)
    finally:
        gone.set()
    answer.body, answer.pieces = b"".join(parts), len(parts)
    return answer
