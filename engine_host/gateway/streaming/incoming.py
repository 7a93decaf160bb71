"""The bytes of a stream as who answers sends them, made ready for the rest of their way."""

from collections.abc import Callable

from engine_host.gateway import error_answers as faults
from engine_host.gateway.directory import Target
from engine_host.gateway.inspection.capture import Capture
from engine_host.gateway.routing.delta_filter import delta_filter
from engine_host.gateway.routing.failures import hidden
from engine_host.gateway.streaming.line_ends import LineEnds
from engine_host.gateway.streaming.told_errors import ToldErrors
from engine_host.gateway.upstream import Upstream


class Incoming:
    """One stream with its errors in the client's form; a provider's without its key and with plain lines."""

    def __init__(
        self,
        upstream: Upstream,
        target: Target,
        form: faults.Form,
        request_id: str,
        capture: Capture | None,
    ) -> None:
        """`form` is that of the frames, which a client reads or a translation."""
        self._upstream = upstream
        self._target = target
        self._capture = capture
        self._lines = None if target.provider is None else LineEnds()
        self._secrets = delta_filter(target.key)
        self._errors = ToldErrors(target, form, request_id)
        self._over = False
        self.concerns: Callable[[bytes], bool] = (
            self._errors.concerns if self._lines is None else self._concerns
        )
        """Returns False for a next piece that `read` would return as it is."""

    @property
    def fault(self) -> faults.EndpointError | None:
        """The error that the stream told, None where it told none."""
        return self._errors.fault

    def _concerns(self, piece: bytes) -> bool:
        foreign = bool(self._target.key) or (self._lines is not None and not self._lines.are_plain(piece))
        return foreign or self._errors.concerns(piece)

    async def read(self) -> bytes | None:
        """Return the next bytes; b"" where there are none yet, None at the end. Raises UpstreamLostError."""
        piece = await self._upstream.read()
        if piece is None:
            return await self._rest()
        if self._lines is not None:
            piece = self._lines.feed(piece)
        if self._secrets is not None:
            piece = self._secrets.feed(piece)
        if self._capture is not None:
            self._capture.from_engine(piece)
        return await self._checked(piece)

    async def _rest(self) -> bytes | None:
        """Return what still waited, once."""
        if self._over:
            return None
        self._over = True
        rest = b"" if self._secrets is None else self._secrets.end()
        if self._capture is not None:
            self._capture.from_engine(rest)
        return (await self._checked(rest) + await self._errors.end()) or None

    async def _checked(self, piece: bytes) -> bytes:
        if not piece or not self._errors.concerns(piece):
            return piece
        return await self._errors.feed(hidden(self._target, piece) if b'"error"' in piece else piece)
