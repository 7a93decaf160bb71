"""Get a call of a tool where one has to be made, from an engine that lets a model write instead.

With `tool_choice: required` llama.cpp's grammar allows a text before the call, and a model may write until
its limit and call nothing. It is asked so first, since a model calls best in the words that it was trained
for. Where it writes on, or ends, without a call, it is asked again for a list of calls by a JSON schema,
which it cannot leave, and the list is told as the calls that it is.
"""

import json
import secrets
from dataclasses import dataclass
from typing import Any

from engine_host.core import sse
from engine_host.core.outside import json_text
from engine_host.gateway import error_answers as faults
from engine_host.gateway.openai.frames import WholeFrames
from engine_host.gateway.passage import Passage

_LONGEST_NAME = 4096
_ID_LETTERS = 9
"""Mistral's templates take ids of exactly nine letters and digits; all others take any."""


def has_to_call(chat: dict[str, Any]) -> bool:
    """Return True for a chat, as llama.cpp reads it, that is to be answered with a call."""
    tools = chat.get("tools")
    return chat.get("tool_choice") == "required" and isinstance(tools, list) and bool(tools)


def as_format(chat: dict[str, Any]) -> dict[str, Any]:
    """Return the same chat that asks for its calls as JSON; the tools stay in its prompt."""
    once = chat.get("parallel_tool_calls") is False
    schema = {"name": "calls", "strict": True, "schema": _schema(chat["tools"], once=once)}
    return {
        **chat,
        "tool_choice": "none",
        "response_format": {"type": "json_schema", "json_schema": schema},
    }


def _schema(tools: list[Any], *, once: bool) -> dict[str, Any]:
    """The schema of a list of calls; the name comes first, so that a call can be told as it is written."""
    kinds: list[dict[str, Any]] = []
    places: dict[str, Any] = {}
    for number, tool in enumerate(tools):
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            continue
        parameters = function.get("parameters")
        if not isinstance(parameters, dict) or parameters.get("type", "object") != "object":
            parameters = {}
        place = f"#/$defs/{number}"
        places[str(number)] = {**_moved(parameters, place), "type": "object"}
        kinds.append(
            {
                "type": "object",
                "properties": {"name": {"const": function["name"]}, "arguments": {"$ref": place}},
                "required": ["name", "arguments"],
                "additionalProperties": False,
            }
        )
    bound = {"maxItems": 1} if once else {}
    return {"type": "array", "items": {"anyOf": kinds}, "minItems": 1, **bound, "$defs": places}


def _moved(schema: Any, place: str) -> Any:
    """Return a schema whose references within itself hold at another place."""
    if isinstance(schema, list):
        return [_moved(one, place) for one in schema]
    if not isinstance(schema, dict):
        return schema
    moved = {name: _moved(one, place) for name, one in schema.items()}
    there = moved.get("$ref")
    if isinstance(there, str) and there.startswith("#"):
        moved["$ref"] = place + there.removeprefix("#")
    return moved


class CallsOfText(Passage):
    """Tells a chat whose text is a list of calls as one that calls tools, each piece as it comes."""

    def __init__(self) -> None:
        self._frames = WholeFrames()
        self._lists: dict[object, _CallList] = {}

    def feed(self, data: bytes) -> bytes:
        """Return the frames that are whole in what has come so far. Raises EndpointError."""
        return b"".join(self._frame(frame) for frame in sse.split(self._frames.feed(data)))

    def end(self) -> bytes:
        """Return the bytes after the last whole frame."""
        return self._frames.end()

    def convert(self, body: bytes) -> bytes:
        """Return the whole answer with its calls. Raises EndpointError(502)."""
        try:
            answer = json_text.parse_object(body)
            for choice in answer["choices"]:
                self._tell(choice, choice["message"])
                for call in choice["message"].get("tool_calls") or ():
                    del call["index"]
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise faults.odd_answer() from error
        return _encoded(answer)

    def _frame(self, frame: bytes) -> bytes:
        data = sse.data_of(frame)
        if not data or data == sse.DONE.encode():
            return frame + sse.FRAME_END
        try:
            chunk = json_text.parse_object(data)
            choices = chunk.get("choices") or []
            if not any(self._tell(choice, choice.get("delta") or {}) for choice in choices):
                return frame + sse.FRAME_END
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise faults.odd_answer() from error
        silent = all(not choice["delta"] and not choice.get("finish_reason") for choice in choices)
        if silent and not chunk.get("usage") and not chunk.get("timings"):
            return b""
        return sse.frame_of(_encoded(chunk))

    def _tell(self, choice: dict[str, Any], said: dict[str, Any]) -> bool:
        """Put calls in the place of a text; True where something has changed."""
        calls = self._lists.setdefault(choice.get("index"), _CallList())
        text = said.get("content")
        changed = isinstance(text, str)
        if isinstance(text, str):
            told = calls.feed(text)
            if "role" in said:
                said["content"] = None
            else:
                del said["content"]
            if told:
                said["tool_calls"] = told
        if choice.get("finish_reason") == "stop" and calls.number:
            choice["finish_reason"], changed = "tool_calls", True
        return changed


@dataclass
class _CallList:
    """A list of calls in JSON, taken apart letter by letter as it is written."""

    number: int = 0
    """Calls that have begun."""
    _depth: int = 0
    _in_text: bool = False
    _escaped: bool = False
    _head: str = ""

    def feed(self, text: str) -> list[dict[str, Any]]:
        """Return what the next letters add, one part for each call. Raises ValueError for another thing."""
        parts: dict[int, dict[str, Any]] = {}
        for letter in text:
            in_arguments = self._depth > 2
            if self._take(letter):
                parts[self.number] = self._begun()
                self.number += 1
                in_arguments = True
            if in_arguments:
                part = parts.setdefault(
                    self.number - 1, {"index": self.number - 1, "function": {"arguments": ""}}
                )
                part["function"]["arguments"] += letter
            elif self._depth == 2:
                self._head += letter
                if len(self._head) > _LONGEST_NAME:
                    raise ValueError("a call without arguments")
        return list(parts.values())

    def _take(self, letter: str) -> bool:
        """Follow the nesting; True where arguments begin."""
        if self._in_text:
            self._in_text = self._escaped or letter != '"'
            self._escaped = letter == "\\" and not self._escaped
        elif letter == '"':
            self._in_text = True
        elif letter in "{[":
            self._depth += 1
            if self._depth == 2:
                self._head = ""
            return self._depth == 3
        elif letter in "}]":
            self._depth -= 1
        return False

    def _begun(self) -> dict[str, Any]:
        named = json.loads(self._head + "null}")
        function = {"name": str(named["name"]), "arguments": ""}
        call_id = secrets.token_hex(_ID_LETTERS)[:_ID_LETTERS]
        return {"index": self.number, "id": call_id, "type": "function", "function": function}


def _encoded(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
