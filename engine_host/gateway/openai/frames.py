"""Cut a stream at the ends of its frames, for whoever reads what is in them."""

from engine_host.gateway.upstream import AnswerTooLargeError

_LARGEST = 4 << 20
"""Bytes of one frame; a frame of a chat has some hundred."""


class WholeFrames:
    """Holds the beginning of a frame until the rest of it has come."""

    def __init__(self, end: bytes = b"\n\n") -> None:
        self._end = end
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        """Return the whole frames in what has come so far. Raises AnswerTooLargeError for one without end."""
        if not self._rest and data.endswith(self._end):
            return data
        data = self._rest + data
        place = data.rfind(self._end)
        cut = place + len(self._end) if place >= 0 else 0
        self._rest = data[cut:]
        if len(self._rest) > _LARGEST:
            raise AnswerTooLargeError(_LARGEST)
        return data[:cut]

    def end(self) -> bytes:
        """Return the bytes after the last whole frame."""
        rest, self._rest = self._rest, b""
        return rest
