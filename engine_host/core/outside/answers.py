"""Answers of an HTTP server that may be anybody's: read up to a size, and only as they are.

A compressed answer of some kilobytes may be gigabytes, so none is asked for and none is taken.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine_host.core.outside import json_text

if TYPE_CHECKING:
    import httpx

UNCOMPRESSED = {"Accept-Encoding": "identity"}


class AnswerError(ValueError):
    """An answer that is larger than it may be, or compressed."""


@dataclass(frozen=True, slots=True)
class Body:
    """A whole answer."""

    status: int
    content: bytes

    @property
    def is_success(self) -> bool:
        """True for a status of 200 to 299."""
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        """The answer as text; what is no UTF-8 is replaced."""
        return self.content.decode("utf-8", "replace")

    def json(self) -> Any:
        """The answer as a value. Raises ValueError."""
        return json_text.parse(self.content)

    def object(self) -> dict[str, Any]:
        """The answer as an object. Raises ValueError."""
        return json_text.parse_object(self.content)


async def read(answer: "httpx.Response", most: int) -> bytes:
    """Return the body of an answer that is being streamed. Raises AnswerError, httpx.HTTPError."""
    check_plain(answer)
    body = bytearray()
    async for part in answer.aiter_bytes():
        _add(body, part, most)
    return bytes(body)


def read_now(answer: "httpx.Response", most: int) -> bytes:
    """Return the same of a synchronous client. Raises AnswerError, httpx.HTTPError."""
    check_plain(answer)
    body = bytearray()
    for part in answer.iter_bytes():
        _add(body, part, most)
    return bytes(body)


async def fetch(
    client: "httpx.AsyncClient",
    path: str,
    *,
    most: int,
    seconds: float,
    json: Mapping[str, Any] | None = None,
) -> Body:
    """Ask for a path, or send it a body; all of it takes `seconds`. Raises AnswerError, httpx.HTTPError."""
    method = "GET" if json is None else "POST"
    try:
        async with (
            asyncio.timeout(seconds),
            client.stream(method, path, json=json, headers=UNCOMPRESSED, timeout=seconds) as answer,
        ):
            return Body(answer.status_code, await read(answer, most))
    except TimeoutError as error:
        # Byte by byte an answer may go on for ever.
        import httpx

        raise httpx.ReadTimeout(f"the answer took more than {seconds:g} s") from error


def check_plain(answer: "httpx.Response") -> None:
    """Raise AnswerError for an answer that is compressed."""
    if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise AnswerError("the answer is compressed, which nobody asked for")


def _add(body: bytearray, part: bytes, most: int) -> None:
    body += part
    if len(body) > most:
        raise AnswerError(f"the answer is larger than {most} bytes")
