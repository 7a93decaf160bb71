"""Server-sent events, read line by line; the one reader of event streams and of OpenAI's."""

from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field

DONE = "[DONE]"
"""The data that ends an OpenAI stream."""


@dataclass(frozen=True)
class SseMessage:
    """One message; a comment line of the server comes as a message with only a comment."""

    data: str = ""
    id: str = ""
    event: str = ""
    comment: str = ""


@dataclass
class Reader:
    """Puts messages together from lines."""

    _data: list[str] = field(default_factory=list)
    _id: str = ""
    _event: str = ""

    def feed(self, line: str) -> SseMessage | None:
        """Take a line without its end; return the message that it completes."""
        if not line:
            done = SseMessage("\n".join(self._data), self._id, self._event) if self._data else None
            self._data, self._event = [], ""
            return done
        if line.startswith(":"):
            return SseMessage(comment=line[1:].strip())
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "id":
            self._id = value
        elif name == "event":
            self._event = value
        return None


def messages(lines: Iterable[str]) -> Iterator[SseMessage]:
    """The messages and the comments in lines; one that is cut off is not told."""
    reader = Reader()
    for line in lines:
        if (message := reader.feed(line)) is not None:
            yield message


async def async_messages(lines: AsyncIterator[str]) -> AsyncIterator[SseMessage]:
    """The messages and the comments in a stream of lines; one that is cut off is not told."""
    reader = Reader()
    async for line in lines:
        if (message := reader.feed(line)) is not None:
            yield message


def payloads(frames: bytes) -> list[bytes]:
    """The data of each `data:` line in these bytes, for who passes a stream on."""
    return [line[5:].strip() for line in frames.split(b"\n") if line.startswith(b"data:")]
