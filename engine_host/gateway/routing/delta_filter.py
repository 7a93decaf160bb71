"""Take a provider's key out of the words of its answer, also where several events of a stream share it.

`key_filter` sees the bytes; here the texts are put together as a client does it, so that a key which comes
word by word, or written with escapes, is found too.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from engine_host.core import sse
from engine_host.core.outside import json_text
from engine_host.gateway.openai.frames import WholeFrames
from engine_host.gateway.routing.key_filter import SHORTEST_SECRET

_HIDDEN = "***"
_NAME = re.compile(rb'"\s*:')
_TEXTS = ("content", "reasoning_content", "reasoning", "refusal")
_MOST_CHANNELS = 256
"""Texts of one stream that are followed at a time: choices, and calls of tools in each."""

Channel = tuple[object, ...]


@dataclass(frozen=True)
class _Part:
    """One text in an event: what it continues, how it is changed, and an event that holds it alone."""

    channel: Channel
    text: str
    put: Callable[[str], None]
    alone: Callable[[str], dict[str, Any]]


@dataclass
class _Held:
    """The end of a text that may be the beginning of the key, and the event that would carry it."""

    text: str
    frame: bytes
    alone: Callable[[str], dict[str, Any]]


class DeltaFilter:
    """One answer's way past the key."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._bytes = key.encode()
        self._frames = WholeFrames()
        self._held: dict[Channel, _Held] = {}

    def feed(self, data: bytes) -> bytes:
        """Return the whole frames of a stream so far. Raises AnswerTooLargeError for one without end."""
        whole = self._frames.feed(data)
        if self._is_clean(whole):
            return whole
        return sse.join(one for frame in sse.split(whole) for one in self._frame(frame)) if whole else b""

    def end(self) -> bytes:
        """Return what still waited, once nothing more comes."""
        return sse.join(self._flushed()) + self._frames.end()

    def whole(self, body: bytes) -> bytes:
        """Return a whole answer without the key; what is no object stays as it is."""
        try:
            value = json_text.parse_object(body)
        except ValueError:
            return body
        cleaned = self._cleaned(value)
        return body if cleaned == value else _encoded(cleaned)

    def _is_clean(self, frames: bytes) -> bool:
        """Return True where no text of whole frames holds the key, or may be its beginning.

        Without escapes the bytes of a text are those of its JSON. Reading the JSON of each token would take
        most of the time that a stream takes here.
        """
        if self._held or b"\\" in frames or self._bytes in frames:
            return False
        return not self._may_go_on(frames)

    def _may_go_on(self, frames: bytes) -> bool:
        """Return True where a value, and no name, ends with a beginning of the key."""
        first, most = self._bytes[:1], len(self._bytes)
        at = frames.find(first)
        while at >= 0:
            end = frames.find(b'"', at, at + most)
            if end > 0 and self._bytes.startswith(frames[at:end]) and not _NAME.match(frames, end):
                return True
            at = frames.find(first, at + 1)
        return False

    def _frame(self, frame: bytes) -> Iterator[bytes]:
        if self._is_clean(frame):
            yield frame
            return
        data = sse.data_of(frame)
        if not data:
            yield frame
            return
        try:
            value = json_text.parse_object(data)
        except ValueError:
            yield from self._flushed()
            yield frame
            return
        changed = False
        for part in _parts(value):
            before = self._held.pop(part.channel, None)
            text = ((before.text if before else "") + part.text).replace(self._key, _HIDDEN)
            kept = self._begun(text) if len(self._held) < _MOST_CHANNELS else len(text)
            if kept < len(text):
                self._held[part.channel] = _Held(text[kept:], frame, part.alone)
            if text[:kept] != part.text:
                part.put(text[:kept])
                changed = True
        if _ends(value):
            yield from self._flushed()
        cleaned = self._cleaned(value)
        yield sse.with_data(frame, _encoded(cleaned)) if changed or cleaned != value else frame

    def _flushed(self) -> Iterator[bytes]:
        held, self._held = self._held, {}
        for one in held.values():
            yield sse.with_data(one.frame, _encoded(one.alone(one.text)))

    def _begun(self, text: str) -> int:
        """Return the place from which all to the end is the key's beginning."""
        at = text.find(self._key[0], max(0, len(text) - len(self._key) + 1))
        while at >= 0 and not self._key.startswith(text[at:]):
            at = text.find(self._key[0], at + 1)
        return at if at >= 0 else len(text)

    def _cleaned(self, value: Any) -> Any:
        if isinstance(value, str):
            return value.replace(self._key, _HIDDEN)
        if isinstance(value, dict):
            return {name.replace(self._key, _HIDDEN): self._cleaned(part) for name, part in value.items()}
        if isinstance(value, list):
            return [self._cleaned(part) for part in value]
        return value


def delta_filter(key: str | None) -> DeltaFilter | None:
    """Return the filter for a target's key; None where there is none to hide."""
    return DeltaFilter(key) if key is not None and len(key) >= SHORTEST_SECRET else None


def _parts(value: dict[str, Any]) -> Iterator[_Part]:
    """Yield the texts of an event of a chat, a completion or of Responses that others continue."""
    kind = value.get("type")
    if isinstance(kind, str) and kind.endswith(".delta") and isinstance(value.get("delta"), str):
        place = (kind, value.get("item_id"), value.get("output_index"), value.get("content_index"))
        yield _Part(
            tuple(map(str, place)),
            value["delta"],
            _setter(value, "delta"),
            lambda text: {**value, "delta": text},
        )
    choices = value.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict):
            yield from _of_choice(value, choice)


def _of_choice(value: dict[str, Any], choice: dict[str, Any]) -> Iterator[_Part]:
    index = choice.get("index")

    def alone(**more: Any) -> dict[str, Any]:
        names = ("id", "object", "created", "model")
        said = {name: value[name] for name in names if name in value}
        return {**said, "choices": [{"index": index, **more, "finish_reason": None}]}

    if isinstance(choice.get("text"), str):
        yield _Part(
            (str(index), "text"), choice["text"], _setter(choice, "text"), lambda text: alone(text=text)
        )
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return
    for name in _TEXTS:
        if isinstance(delta.get(name), str):
            yield _Part(
                (str(index), name),
                delta[name],
                _setter(delta, name),
                lambda text, name=name: alone(delta={name: text}),  # type: ignore[misc]
            )
    calls = delta.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and isinstance(function.get("arguments"), str):
            number = call.get("index")
            yield _Part(
                (str(index), "call", str(number)),
                function["arguments"],
                _setter(function, "arguments"),
                lambda text, number=number: alone(  # type: ignore[misc]
                    delta={"tool_calls": [{"index": number, "function": {"arguments": text}}]}
                ),
            )


def _setter(holder: dict[str, Any], name: str) -> Callable[[str], None]:
    def put(text: str) -> None:
        holder[name] = text

    return put


def _ends(value: dict[str, Any]) -> bool:
    """Return True for an event after which a text goes on no more: what was held goes out before it."""
    kind = value.get("type")
    if isinstance(kind, str):
        return not kind.endswith(".delta")
    choices = value.get("choices")
    return not isinstance(choices, list) or any(
        isinstance(choice, dict) and choice.get("finish_reason") is not None for choice in choices
    )


def _encoded(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
