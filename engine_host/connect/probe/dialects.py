"""The questions and answers of each dialect, as far as a probe has to know them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine_host.connect.clients.definition import Dialect
from engine_host.core import sse
from engine_host.core.outside import json_text

TOOL = "get_weather"
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
_ABOUT = "The weather of a city now."


@dataclass(frozen=True)
class Piece:
    """One event of a stream; `arguments` are of a tool's call, `error` is what went wrong."""

    text: str = ""
    tool: str = ""
    arguments: str = ""
    ended: bool = False
    error: str = ""


@dataclass(frozen=True)
class Form:
    """One dialect: where it asks, and by which headers its list of models is known."""

    dialect: Dialect
    path: str
    models: str
    version: Mapping[str, str]

    def headers(self, key: str) -> dict[str, str]:
        """Return the headers of a request, with the key where this dialect's clients put it."""
        carried = {"x-api-key": key} if self.dialect is Dialect.MESSAGES else {}
        return {"authorization": f"Bearer {key}", **carried, **self.version}

    def body(self, model: str, text: str, limit: int, *, tool: bool = False) -> dict[str, Any]:
        """Return a streamed question of at most so many tokens of answer; with `tool` it has to call one."""
        if self.dialect is Dialect.RESPONSES:
            asked: dict[str, Any] = {"input": text, "max_output_tokens": limit, "store": False}
            tools: Any = {"type": "function", "name": TOOL, "description": _ABOUT, "parameters": _SCHEMA}
            choice: Any = "required"
        else:
            asked = {"messages": [{"role": "user", "content": text}], "max_tokens": limit}
            choice = "required"
            tools = {
                "type": "function",
                "function": {"name": TOOL, "description": _ABOUT, "parameters": _SCHEMA},
            }
            if self.dialect is Dialect.MESSAGES:
                tools = {"name": TOOL, "description": _ABOUT, "input_schema": _SCHEMA}
                choice = {"type": "any"}
        more = {"tools": [tools], "tool_choice": choice} if tool else {}
        return {"model": model, "stream": True, **asked, **more}

    def piece(self, message: sse.SseMessage) -> Piece:
        """Read one event. Raises ValueError for what is no JSON object."""
        if not message.data:
            return Piece()
        if message.data == sse.DONE:
            return Piece(ended=True)
        data = json_text.parse_object(message.data)
        if data.get("error") is not None:
            return Piece(error=said(data))
        if self.dialect is Dialect.CHAT:
            return _chat(data)
        return _response(data) if self.dialect is Dialect.RESPONSES else _message(data)

    def listed(self, data: Mapping[str, Any]) -> dict[str, int | None]:
        """Return the models of a list with their contexts, None where it is not told."""
        kept = data.get("models" if self.dialect is Dialect.RESPONSES else "data")
        found: dict[str, int | None] = {}
        for entry in kept if isinstance(kept, list) else []:
            if isinstance(entry, dict):
                name = entry.get("slug", entry.get("id"))
                told = [entry.get(key) for key in ("context_window", "context_length", "max_input_tokens")]
                if isinstance(name, str):
                    found[name] = next((one for one in told if isinstance(one, int)), None)
        return found


FORMS = {
    Dialect.CHAT: Form(Dialect.CHAT, "/chat/completions", "/models", {}),
    Dialect.RESPONSES: Form(Dialect.RESPONSES, "/responses", "/models?client_version=0.169.0", {}),
    Dialect.MESSAGES: Form(Dialect.MESSAGES, "/messages", "/models", {"anthropic-version": "2023-06-01"}),
}


def said(data: Mapping[str, Any]) -> str:
    """Return the message of an error in whatever form it comes."""
    error = data.get("error")
    response = data.get("response")
    if error is None and isinstance(response, dict):
        error = response.get("error")
    if isinstance(error, dict):
        error = error.get("message") or error.get("type")
    return str(error or "an error without words")[:500]


def _chat(data: Mapping[str, Any]) -> Piece:
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else {}
    delta = choice.get("delta") if isinstance(choice, dict) else None
    if not isinstance(delta, dict):
        return Piece()
    calls = delta.get("tool_calls")
    call = calls[0] if isinstance(calls, list) and calls else {}
    function = call.get("function") if isinstance(call, dict) else None
    function = function if isinstance(function, dict) else {}
    text = delta.get("content") or delta.get("reasoning_content") or delta.get("reasoning")
    return Piece(_text(text), _text(function.get("name")), _text(function.get("arguments")))


def _response(data: Mapping[str, Any]) -> Piece:
    kind = _text(data.get("type"))
    if kind in {"response.completed", "response.incomplete"}:
        return Piece(ended=True)
    if kind == "response.failed":
        return Piece(error=said(data))
    if kind == "response.function_call_arguments.delta":
        return Piece(arguments=_text(data.get("delta")))
    item = data.get("item")
    if (
        kind == "response.output_item.added"
        and isinstance(item, dict)
        and item.get("type") == "function_call"
    ):
        return Piece(tool=_text(item.get("name")))
    return Piece(_text(data.get("delta"))) if kind.endswith("_text.delta") else Piece()


def _message(data: Mapping[str, Any]) -> Piece:
    kind = _text(data.get("type"))
    if kind == "message_stop":
        return Piece(ended=True)
    delta, block = data.get("delta"), data.get("content_block")
    if kind == "content_block_start" and isinstance(block, dict) and block.get("type") == "tool_use":
        return Piece(tool=_text(block.get("name")))
    if kind == "content_block_delta" and isinstance(delta, dict):
        return Piece(
            _text(delta.get("text") or delta.get("thinking")), arguments=_text(delta.get("partial_json"))
        )
    return Piece()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
