"""Tell of an error in the middle of a Messages stream: one in this form as it is, others brought into it."""

from typing import Any

from engine_host.core import sse
from engine_host.gateway import error_answers as faults


def error_event(frame: bytes, told: dict[str, Any], request_id: str) -> bytes:
    """Return the event for a frame that tells of an error; `told` is what the frame holds."""
    error = told["error"]
    if told.get("type") == "error" and isinstance(error, dict) and "src" in error:
        # Written for this request already, with its id.
        return frame + sse.FRAME_END
    return faults.engine_fault(500, sse.data_of(frame)).frame(faults.Form.ANTHROPIC, request_id)
