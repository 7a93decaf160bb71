"""The text of an answer put together again from its stream, in any of the forms that clients read."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from engine_host.core.outside import json_text
from engine_host.core.sse import payloads

_DELTAS = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "text",
    "response.reasoning_text.delta": "reasoning",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.function_call_arguments.delta": "call",
}
_MOST = 1 << 20

Piece = tuple[str, str]
"""What a piece is (text, reasoning, call, error) and its words."""


def assembled(body: bytes) -> str:
    """Return what an answer says: reasoning, text and calls of tools, each under a heading of its own.

    Empty where nothing in it is known as such, as with vectors.
    """
    parts: list[tuple[str, list[str]]] = []
    size = 0
    for kind, words in _pieces(body):
        size += len(words)
        if size > _MOST:
            break
        if not parts or parts[-1][0] != kind:
            parts.append((kind, []))
        parts[-1][1].append(words)
    told = [(kind, "".join(words).strip("\n")) for kind, words in parts]
    if [kind for kind, _ in told] == ["text"]:
        return told[0][1]
    return "\n\n".join(f"[{kind}]\n{words}" for kind, words in told if words)


def _pieces(body: bytes) -> Iterator[Piece]:
    for value in _values(body):
        error = value.get("error")
        if isinstance(error, Mapping):
            yield "error", str(error.get("message", ""))
        elif isinstance(error, str):
            yield "error", error
        for kind, words in _of(value):
            if words:
                yield kind, words


def _values(body: bytes) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a whole answer, of lines of JSON, or of a stream of events."""
    whole = _object(body)
    if whole is not None:
        yield whole
        return
    for payload in payloads(body):
        if (value := _object(payload)) is not None:
            yield value
    for line in body.split(b"\n"):
        if line.startswith(b"{") and (value := _object(line)) is not None:
            yield value


def _object(data: bytes) -> Mapping[str, Any] | None:
    try:
        return json_text.parse_object(data)
    except ValueError:
        return None


def _of(value: Mapping[str, Any]) -> Iterator[Piece]:
    kind = value.get("type")
    if isinstance(kind, str) and kind in _DELTAS:
        yield _DELTAS[kind], _text(value.get("delta"))
        return
    if kind == "response.output_item.added":
        yield from _item(value.get("item"), begun=True)
    elif kind == "content_block_start":
        yield from _item(value.get("content_block"), begun=True)
    elif kind == "content_block_delta":
        delta = _table(value.get("delta"))
        yield "text", _text(delta.get("text"))
        yield "reasoning", _text(delta.get("thinking"))
        yield "call", _text(delta.get("partial_json"))
    elif kind == "message" or value.get("object") == "response":
        for item in (*_list(value.get("content")), *_list(value.get("output"))):
            yield from _item(item)
    elif isinstance(value.get("choices"), list):
        for choice in value["choices"]:
            yield from _choice(_table(choice))
    elif isinstance(value.get("message"), Mapping):
        yield from _message(value["message"])
    else:
        yield "text", _text(value.get("response")) or _text(value.get("content"))


def _choice(choice: Mapping[str, Any]) -> Iterator[Piece]:
    yield "text", _text(choice.get("text"))
    for name in ("delta", "message"):
        yield from _message(_table(choice.get(name)))


def _message(said: Mapping[str, Any]) -> Iterator[Piece]:
    """Yield the parts of a message of a chat; Ollama's has its reasoning in `thinking`."""
    for name in ("reasoning_content", "reasoning", "thinking"):
        if isinstance(said.get(name), str):
            yield "reasoning", said[name]
            break
    yield "text", _text(said.get("content"))
    yield "text", _text(said.get("refusal"))
    for call in _list(said.get("tool_calls")):
        function = _table(_table(call).get("function"))
        if name := _text(function.get("name")):
            yield "call", f"\n{name} "
        yield "call", _words(function.get("arguments"))


def _item(item: object, *, begun: bool = False) -> Iterator[Piece]:
    """Yield the parts of an item of Responses, or of a block of Messages; of one that begins, its name."""
    told = _table(item)
    kind = told.get("type")
    if kind in ("function_call", "tool_use"):
        yield "call", f"\n{_text(told.get('name'))} "
        if not begun:
            yield "call", _words(told.get("arguments", told.get("input")))
    elif begun:
        return
    elif kind == "reasoning":
        for part in (*_list(told.get("summary")), *_list(told.get("content"))):
            yield "reasoning", _text(_table(part).get("text"))
    elif kind == "message":
        for part in _list(told.get("content")):
            yield "text", _text(_table(part).get("text")) or _text(_table(part).get("refusal"))
    else:
        yield "text", _text(told.get("text"))
        yield "reasoning", _text(told.get("thinking"))


def _words(value: object) -> str:
    """Return arguments as text: they come as JSON in a text, or as a value."""
    return value if isinstance(value, str) else json.dumps(value) if value is not None else ""


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> Iterable[Any]:
    return value if isinstance(value, list) else ()
