"""The tokens of a stream while it is written: asked of the engine, and taken out again before the client.

A frame is no token: with speculation one holds several, and some tokens have none. So the engine is asked to
tell with each frame what it has counted. What else a frame says passes byte for byte.
"""

import json
import re
from typing import Any

from engine_host.core import sse
from engine_host.gateway.passage import Passage

_TIMINGS = "timings_per_token"
_USAGE = "continuous_usage_stats"
# A quotation mark within a text has a stroke before it, so that these are fields and nothing written.
_OPTIONS = re.compile(rb'"stream_options"\s*:\s*\{')
_OF_A_PIECE = re.compile(rb',"timings":\{[^{}]*\}')
_BEGIN = b',"timings":{'
_GOES_ON = b'data: {"choices":[{"finish_reason":null,'
# Its own form repeats at the end what it was asked for.
_SETTING = (b'"timings_per_token":true', b'"timings_per_token":false')
_BEGINS, _ENDS, _LAST = b',"usage":{', b"}}" + sse.FRAME_END, b'"choices":[]'
_TOLD = re.compile(rb'(?<!"choices":\[\]),"usage":\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}')


def with_timings(raw: bytes, body: dict[str, Any]) -> bytes | None:
    """Return the request that asks llama.cpp for its timings with each frame; None where it says so."""
    if _TIMINGS in body:
        return None
    place = raw.index(b"{") + 1
    return raw[:place] + f'"{_TIMINGS}":true,'.encode() + raw[place:]


class WithoutTimings(Passage):
    """Takes llama.cpp's timings out of all frames but the last, which has them for every client."""

    def feed(self, data: bytes) -> bytes:
        """Return the same whole frames without them."""
        place = data.rfind(_BEGIN)
        if place < 0:
            return data.replace(*_SETTING)
        size = len(data)
        # Nearly every piece is one frame of a chat that goes on, and is looked at once a token.
        if data.find(b"}", place) == size - 4 and data.count(b"\n") == 2 and data.startswith(_GOES_ON):
            return data[:place] + data[size - 3 :]
        place = data.find(_BEGIN)
        end = data.find(b"}", place) + 1
        if not _has_end(data):
            return data[:place] + data[end:] if data.find(_BEGIN, end) < 0 else _OF_A_PIECE.sub(b"", data)
        frames = (one + sse.FRAME_END for one in sse.split(data))
        return b"".join(
            one.replace(*_SETTING) if _has_end(one) else _OF_A_PIECE.sub(b"", one) for one in frames
        )


def _has_end(frames: bytes) -> bool:
    """Return True where the last frame is among them, of a chat, a completion or llama.cpp's own form."""
    return b'"finish_reason":"' in frames or b'"choices":[]' in frames or b'"stop":true' in frames


def with_usage_of_each(raw: bytes, body: dict[str, Any]) -> bytes | None:
    """Return the request that asks vLLM for usage with each frame and at the end; None where it says so."""
    options = body.get("stream_options")
    if options is None and "stream_options" not in body:
        place = raw.index(b"{") + 1
        asked = f'"stream_options":{{"include_usage":true,"{_USAGE}":true}},'
        return raw[:place] + asked.encode() + raw[place:]
    known = options if isinstance(options, dict) else {}
    if _USAGE in known:
        return None
    places = list(_OPTIONS.finditer(raw))
    if known.get("include_usage") and len(places) == 1:
        # Reading and writing a long prompt again would take longer than its first token may.
        place = places[0].end()
        return raw[:place] + f'"{_USAGE}":true,'.encode() + raw[place:]
    return json.dumps({**body, "stream_options": {**known, "include_usage": True, _USAGE: True}}).encode()


def without_usage(frames: bytes) -> bytes:
    """Return vLLM's whole frames without the usage of each; that of the end, without choices, keeps its."""
    # Nearly every piece is one frame that ends with it, and is looked at once a token.
    place = frames.find(_BEGINS)
    if frames.endswith(_ENDS) and frames.find(b"}", place) == len(frames) - len(_ENDS) and place > 0:
        return frames if frames.endswith(_LAST, 0, place) else frames[:place] + _ENDS[1:]
    return _TOLD.sub(b"", frames)
