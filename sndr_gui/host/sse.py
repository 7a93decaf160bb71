"""Server-sent events, read line by line."""

from collections.abc import AsyncIterator
from dataclasses import dataclass


@dataclass(frozen=True)
class SseMessage:
    """One message; a comment line of the server comes as a message with only a comment."""

    data: str = ""
    id: str = ""
    event: str = ""
    comment: str = ""


async def messages(lines: AsyncIterator[str]) -> AsyncIterator[SseMessage]:
    """The messages and the comments in a stream of lines."""
    data: list[str] = []
    number = event = ""
    async for line in lines:
        if not line:
            if data:
                yield SseMessage("\n".join(data), number, event)
            data, event = [], ""
            continue
        if line.startswith(":"):
            yield SseMessage(comment=line[1:].strip())
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data.append(value)
        elif name == "id":
            number = value
        elif name == "event":
            event = value
