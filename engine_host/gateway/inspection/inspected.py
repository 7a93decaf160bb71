"""A captured request as it is shown: secrets taken out, requests side by side, answers put together."""

import difflib
import json

from engine_host.core.outside import json_text
from engine_host.core.outside.secret_texts import redacted
from engine_host.gateway.inspection.capture import Capture, Kept
from engine_host.gateway.inspection.curl import curl_command
from engine_host.protocol.endpoint.requests import CapturedRequest, KeptText

_MOST_LINES = 4000
"""Lines of each side that are compared; the time grows with both."""
_MOST_DIFFERENCE = 200_000


def inspected(capture: Capture, base: str) -> CapturedRequest:
    """Return a captured request for who looks at it; `base` is the endpoint's address without `/v1`."""
    asked, translated = capture.read(capture.asked), capture.read(capture.translated)
    curl = None
    if capture.asked.whole:
        text = redacted(asked.decode("utf-8", "replace"))
        curl = curl_command(base, capture.path, dict(capture.headers), text.encode())
    return CapturedRequest(
        path=capture.path,
        headers=capture.headers,
        asked=_kept(capture, capture.asked),
        engine_path=capture.engine_path,
        translated=_kept(capture, capture.translated),
        difference=_difference(asked, translated),
        engine_status=capture.engine_status,
        engine_answer=_kept(capture, capture.engine_answer),
        status=capture.status,
        answer=_kept(capture, capture.answer),
        text=redacted(capture.said()),
        curl=curl,
    )


def _kept(capture: Capture, kept: Kept) -> KeptText:
    text = redacted(capture.read(kept).decode("utf-8", "replace"))
    return KeptText(text=text, bytes=kept.size, left_out=kept.size - len(kept.data))


def _difference(asked: bytes, translated: bytes) -> str | None:
    """Return the difference of two bodies, line by line of their JSON; empty where it is the same text."""
    if not translated:
        return None
    if asked == translated:
        return ""
    before, after = _lines(asked), _lines(translated)
    if max(len(before), len(after)) > _MOST_LINES:
        return None
    lines = difflib.unified_diff(before, after, "as sent", "for the engine", lineterm="", n=2)
    return redacted("\n".join(lines)[:_MOST_DIFFERENCE])


def _lines(body: bytes) -> list[str]:
    try:
        value = json_text.parse(body)
    except ValueError:
        return body.decode("utf-8", "replace").split("\n")
    return json.dumps(value, indent=2, ensure_ascii=False).split("\n")
