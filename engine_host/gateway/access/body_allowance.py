"""A bound for the bytes of all request bodies that are held at a time."""

from engine_host.gateway.error_answers import EndpointError
from engine_host.protocol.errors import Reason


class BodyAllowance:
    """So many bytes for all requests together; each takes its part while it is read, and gives it back."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.held = 0

    def part(self) -> "BodyPart":
        """Return the part of one request, of no bytes yet."""
        return BodyPart(self)

    def _take(self, size: int) -> None:
        if self.held + size > self._limit:
            raise EndpointError(
                429,
                "too_many_bytes",
                f"All requests that are being answered may hold {self._limit} bytes together, and they do. "
                "Try again in 5s.",
                Reason.QUEUE_FULL,
                retry_after=5,
            )
        self.held += size


class BodyPart:
    """The part of one request; giving it back twice is harmless."""

    def __init__(self, allowance: BodyAllowance) -> None:
        self._allowance = allowance
        self._size = 0

    def take(self, size: int) -> None:
        """Take more; raises EndpointError 429 when that is more than there is."""
        self._allowance._take(size)
        self._size += size

    def give_back(self) -> None:
        """Give all of it back."""
        self._allowance.held -= self._size
        self._size = 0
