"""Server-sent events: the one reader of event streams and of OpenAI's, and of raw frames that are passed on.

Lines end with a line feed alone: JSON may hold other signs that end a line elsewhere, such as U+2028.
"""

from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field

FRAME_END = b"\n\n"
"""The bytes between two frames."""
DONE = "[DONE]"
"""The data that ends an OpenAI stream."""
LONGEST = 32 << 20
"""Bytes that one message may have: an event with the lines of a log is the longest of ours, with some MB."""


class StreamError(ValueError):
    """A stream that cannot be read on."""


@dataclass(frozen=True)
class SseMessage:
    """One message; a comment line of the server comes as a message with only a comment."""

    data: str = ""
    id: str = ""
    event: str = ""
    comment: str = ""


@dataclass
class Reader:
    """Puts messages together from the bytes of a stream."""

    longest: int = LONGEST
    _rest: list[bytes] = field(default_factory=list)
    _held: int = 0
    _data: list[str] = field(default_factory=list)
    _id: str = ""
    _event: str = ""

    def feed(self, part: bytes) -> Iterator[SseMessage]:
        """Take the next bytes; yield the messages that they complete. Raises StreamError for one too long."""
        *lines, rest = part.split(b"\n")
        for line in lines:
            self._hold(len(line))
            whole = b"".join([*self._rest, line])
            self._rest = []
            if (message := self._line(whole.removesuffix(b"\r").decode("utf-8", "replace"))) is not None:
                yield message
        self._rest.append(rest)
        self._hold(len(rest))

    def _hold(self, size: int) -> None:
        self._held += size
        if self._held > self.longest:
            raise StreamError(f"a message of the stream is longer than {self.longest} bytes")

    def _line(self, line: str) -> SseMessage | None:
        """Take a line without its end; return the message that it completes."""
        if not line:
            done = SseMessage("\n".join(self._data), self._id, self._event) if self._data else None
            self._data, self._event, self._held = [], "", 0
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


def messages(parts: Iterable[bytes], longest: int = LONGEST) -> Iterator[SseMessage]:
    """The messages and the comments in a stream; one that is cut off is not told. Raises StreamError."""
    reader = Reader(longest)
    for part in parts:
        yield from reader.feed(part)


async def async_messages(parts: AsyncIterator[bytes]) -> AsyncIterator[SseMessage]:
    """The messages and the comments in a stream; one that is cut off is not told. Raises StreamError."""
    reader = Reader()
    async for part in parts:
        for message in reader.feed(part):
            yield message


# Of frames that are passed on as they are, but for a few that are changed or left out.


def payloads(frames: bytes) -> list[bytes]:
    """The data of each `data:` line in these bytes, for who passes a stream on."""
    return [line[5:].strip() for line in frames.split(b"\n") if line.startswith(b"data:")]


def newest_payloads(frames: bytes) -> Iterator[bytes]:
    """The same from the last line to the first, each cut out when it is asked for."""
    end = len(frames)
    while end >= 0:
        start = frames.rfind(b"\n", 0, end) + 1
        if frames.startswith(b"data:", start):
            yield frames[start + 5 : end].strip()
        end = start - 1


def split(frames: bytes) -> list[bytes]:
    """The frames in whole ones, each without its end."""
    return frames.removesuffix(FRAME_END).split(FRAME_END) if frames else []


def join(frames: Iterable[bytes]) -> bytes:
    """The same frames with their ends."""
    return b"".join(one + FRAME_END for one in frames)


def data_of(frame: bytes) -> bytes:
    """The data of one frame, its lines together; empty for one without, such as a comment."""
    return b"\n".join(payloads(frame))


def with_data(frame: bytes, data: bytes) -> bytes:
    """The same frame with other data, and all else that it says."""
    others = [line for line in frame.split(b"\n") if not line.startswith(b"data:")]
    return b"\n".join([*others, b"data: " + data])


def frame_of(data: bytes, event: str = "") -> bytes:
    """A frame with its end."""
    named = f"event: {event}\n".encode() if event else b""
    return named + b"data: " + data + FRAME_END
