"""A FAKE llama.cpp that plays a task: it calls the agent's shell once, and then says that it is done.

It writes the frames that llama.cpp's server (build 11549) writes in each form, with all that they lack.
"""

import asyncio
import contextlib
import itertools
import json
from dataclasses import dataclass, field
from typing import Any

DONE = "All finished."
COMMAND = "echo done > proof.txt"
# The shell of each agent, and what it takes.
_SHELLS: dict[str, dict[str, Any]] = {
    "Bash": {"command": COMMAND, "description": "Write the file"},
    "bash": {"command": COMMAND, "description": "Write the file"},
    "exec_command": {"cmd": COMMAND},
    "run_commands": {"commands": [COMMAND]},
    "shell_command": {"command": COMMAND},
    "shell": {"command": ["sh", "-c", COMMAND]},
}
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


@dataclass
class ScriptedEngine:
    """Answers on a Unix socket, in whichever form it is asked."""

    socket: str
    said: str = DONE
    """The last words, for an agent that reads what to do in them."""
    received: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    _ids: Any = field(default_factory=itertools.count)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read one request and answer it."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = next(
                (int(line.split(":")[1]) for line in head.split("\r\n") if line.startswith("Content-Length")),
                0,
            )
            path, body = head.split(" ")[1], json.loads(await reader.readexactly(length))
            self.received.append((path, body))
            writer.write(self._answer(path, body))
            await writer.drain()
        writer.close()

    def _answer(self, path: str, body: dict[str, Any]) -> bytes:
        if "tokens" in path:
            return _whole({"input_tokens": 9})
        call = None if _has_result(body) else _call(body)
        number = next(self._ids)
        if path == "/v1/messages":
            return _message(number, call, stream=bool(body.get("stream")))
        if path == "/v1/responses":
            return _HEAD + _response(number, call)
        return _HEAD + _chat(number, call, self.said)


def _has_result(body: dict[str, Any]) -> bool:
    """Return True once the agent has told what its shell said."""
    text = json.dumps(body.get("messages") or body.get("input"))
    return any(mark in text for mark in ('"tool_result"', '"function_call_output"', '"role": "tool"'))


def _call(body: dict[str, Any]) -> tuple[str, str] | None:
    """The name of the agent's shell and its arguments; None for a question without tools, as for a title."""
    tools = [tool.get("function", tool) for tool in body.get("tools") or ()]
    names = [tool.get("name") for tool in tools]
    return next(((name, json.dumps(given)) for name, given in _SHELLS.items() if name in names), None)


def _whole(value: dict[str, Any]) -> bytes:
    body = json.dumps(value).encode()
    return (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    )


def _frames(*events: dict[str, Any]) -> bytes:
    """Frames with names, as llama.cpp writes those of Responses and Messages."""
    written = (json.dumps(event, separators=(",", ":")) for event in events)
    return b"".join(
        f"event: {event['type']}\ndata: {text}\n\n".encode()
        for event, text in zip(events, written, strict=True)
    )


def _message(number: int, call: tuple[str, str] | None, *, stream: bool) -> bytes:
    message: dict[str, Any] = {
        "id": f"chatcmpl-{number}", "type": "message", "role": "assistant", "content": [],
        "model": "scripted", "stop_reason": None, "stop_sequence": None,
        "usage": {"cache_read_input_tokens": 0, "input_tokens": 9, "output_tokens": 0},
    }  # fmt: skip
    reason = "tool_use" if call else "end_turn"
    usage = {"output_tokens": 5}
    if not stream:
        block = {"type": "text", "text": DONE}
        if call:
            block = {"type": "tool_use", "id": f"t{number}", "name": call[0], "input": json.loads(call[1])}
        return _whole(
            {**message, "content": [block], "stop_reason": reason, "usage": {**message["usage"], **usage}}
        )
    block = {"type": "text", "text": ""}
    delta = {"type": "text_delta", "text": DONE}
    if call:
        block = {"type": "tool_use", "id": f"t{number}", "name": call[0]}
        delta = {"type": "input_json_delta", "partial_json": call[1]}
    return _HEAD + _frames(
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    )


def _response(number: int, call: tuple[str, str] | None) -> bytes:
    begun = {"id": f"resp_{number}", "object": "response", "status": "in_progress"}
    name = f"msg_{number}"
    part: dict[str, Any] = {"type": "output_text", "annotations": [], "logprobs": [], "text": DONE}
    item: dict[str, Any] = {
        "type": "message", "status": "completed", "id": name, "content": [part], "role": "assistant",
    }  # fmt: skip
    between: list[dict[str, Any]] = [
        {"type": "response.output_item.added", "item": {**item, "content": [], "status": "in_progress"}},
        {"type": "response.content_part.added", "item_id": name, "part": {"type": "output_text", "text": ""}},
        {"type": "response.output_text.delta", "item_id": name, "delta": DONE},
        {"type": "response.output_text.done", "item_id": name, "text": DONE},
        {"type": "response.content_part.done", "item_id": name, "part": part},
    ]
    if call:
        name = f"fc_{number}"
        item = {
            "id": name, "type": "function_call", "status": "completed", "arguments": call[1],
            "call_id": f"call_{number}", "name": call[0],
        }  # fmt: skip
        between = [
            {
                "type": "response.output_item.added",
                "item": {**item, "arguments": "", "status": "in_progress"},
            },
            {"type": "response.function_call_arguments.delta", "delta": call[1], "item_id": name},
        ]
    usage = {
        "input_tokens": 9,
        "output_tokens": 5,
        "total_tokens": 14,
        "input_tokens_details": {"cached_tokens": 0},
    }
    ended = {
        **begun,
        "created_at": 1,
        "status": "completed",
        "model": "scripted",
        "output": [item],
        "usage": usage,
    }
    return _frames(
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        *between,
        {"type": "response.output_item.done", "item": item},
        {"type": "response.completed", "response": ended},
    )


def _chat(number: int, call: tuple[str, str] | None, said: str) -> bytes:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None}, {"content": said}]
    if call:
        function = {"name": call[0], "arguments": call[1]}
        deltas[1] = {
            "tool_calls": [{"index": 0, "id": f"c{number}", "type": "function", "function": function}]
        }
    base: dict[str, Any] = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "scripted",
    }
    choices: list[list[dict[str, Any]]] = [
        [{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas
    ]
    choices.append([{"index": 0, "delta": {}, "finish_reason": "tool_calls" if call else "stop"}])
    usage = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
    chunks = [{**base, "choices": one} for one in choices] + [{**base, "choices": [], "usage": usage}]
    return b"".join(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks) + b"data: [DONE]\n\n"
