"""The errors that who answers tells in the middle of a stream: each in the client's form, and whose it is."""

import json
from typing import Any

from engine_host.core import sse
from engine_host.core.outside import json_text
from engine_host.gateway import error_answers as faults
from engine_host.gateway.directory import Target
from engine_host.gateway.refusals import is_dead
from engine_host.gateway.routing import failures

_ERROR = b'"error"'
_MOST_HELD = 256 << 10
"""Bytes of a frame that has no end yet; a longer one is passed on, for no error is so long."""


class ToldErrors:
    """Looks through one stream for them; all else passes as it is.

    `fault` is the last that was told, None while none was.
    """

    def __init__(self, target: Target, form: faults.Form, request_id: str) -> None:
        """`form` is that of the frames, which a client reads or a translation."""
        self._target = target
        self._form = form
        self._request_id = request_id
        self._held = b""
        self.fault: faults.EndpointError | None = None

    def concerns(self, piece: bytes) -> bool:
        """Return True where the next piece has to go through `feed`."""
        return bool(self._held) or _ERROR in piece or not piece.endswith(sse.FRAME_END)

    async def feed(self, piece: bytes) -> bytes:
        """Return the frames that are whole, their errors told as ours."""
        data = self._held + piece
        whole, end, rest = data.rpartition(sse.FRAME_END)
        if len(rest) > _MOST_HELD:
            self._held = b""
            return await self._looked_through(whole + end) + rest
        self._held = rest
        return await self._looked_through(whole + end)

    async def end(self) -> bytes:
        """Return what still waited, once nothing more comes; an error needs no end to be one."""
        rest, self._held = self._held, b""
        return await self._told(rest) or rest

    async def _looked_through(self, frames: bytes) -> bytes:
        if _ERROR not in frames:
            return frames
        return b"".join([await self._told(one) or one + sse.FRAME_END for one in sse.split(frames)])

    async def _told(self, frame: bytes) -> bytes:
        """Return the frame of ours in the place of one that tells an error; empty for any other."""
        if _ERROR not in frame:
            return b""
        try:
            event = json_text.parse_object(sse.data_of(frame))
        except ValueError:
            return b""
        if event.get("error") or event.get("type") == "error":
            self.fault = await self._fault(event)
            return self.fault.frame(self._form, self._request_id)
        failed = event.get("response")
        if not isinstance(failed, dict) or not failed.get("error"):
            return b""
        # Responses' form has its error within the answer, which holds more than that.
        self.fault = await self._fault(failed)
        failed["error"] = {"code": self.fault.code, "message": self.fault.message, "src": self.fault.source}
        return sse.with_data(frame, _encoded(event)) + sse.FRAME_END

    async def _fault(self, told: dict[str, Any]) -> faults.EndpointError:
        data = _encoded({"error": told["error"]} if told.get("error") else told)
        if self._target.provider is not None:
            return failures.provider_broke_off(self._target, data)
        fault = faults.engine_fault(500, data)
        if await is_dead(self._target):
            # Its own words refer to its log, which has another name here.
            return faults.engine_ended(self._target.engine_name, stopped=False, message=fault.message)
        return fault


def _encoded(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
