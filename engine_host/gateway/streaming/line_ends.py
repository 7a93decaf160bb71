"""Line feeds alone in a stream of events: many servers of OpenAI's API end their lines as HTTP does."""


class LineEnds:
    """Brings one stream's ends of lines into one form; JSON holds none of these signs but as escapes."""

    def __init__(self) -> None:
        self._after_return = False

    def are_plain(self, piece: bytes) -> bool:
        """Return True where nothing of the next piece has to be changed."""
        return not self._after_return and b"\r" not in piece

    def feed(self, piece: bytes) -> bytes:
        """Return the same bytes with line feeds; a return is one, and with the feed behind it still one."""
        if self._after_return and piece:
            piece = piece.removeprefix(b"\n")
            self._after_return = False
        if b"\r" not in piece:
            return piece
        self._after_return = piece.endswith(b"\r")
        return piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
