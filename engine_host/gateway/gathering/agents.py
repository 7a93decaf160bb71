"""An answer of the Responses and of the Messages form as a whole, out of a stream."""

from collections.abc import Iterator
from typing import Any

from engine_host.core.outside import json_text
from engine_host.gateway.gathering.chats import may_cut_a_call
from engine_host.gateway.openai.several import is_one

# The field of a block that the deltas of a type add to, and theirs.
_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("input", "partial_json"),
}


def tells_all(body: dict[str, Any]) -> bool:
    """Return True where a stream has all that a whole answer has, as of a chat."""
    turns = body.get("messages", body.get("input"))
    last = turns[-1] if isinstance(turns, list) and turns else None
    goes_on = isinstance(last, dict) and last.get("role") == "assistant"
    return is_one(body) and not goes_on and not may_cut_a_call(body)


def response(told: Iterator[dict[str, Any]], body: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of the Responses form, which the last event holds. Raises ValueError, KeyError."""
    for event in told:
        if event["type"] == "response.completed":
            whole: dict[str, Any] = event["response"]
            return {"completed_at": whole["created_at"], **whole}
    raise ValueError("no end")


def message(told: Iterator[dict[str, Any]], body: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of the Messages form. Raises ValueError, KeyError, TypeError."""
    whole: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    for event in told:
        kind = event["type"]
        if kind == "message_start":
            whole = event["message"]
        elif kind == "content_block_start":
            blocks[event["index"]] = event["content_block"]
        elif kind == "content_block_delta":
            block, delta = blocks[event["index"]], event["delta"]
            name, its = _DELTAS[delta["type"]]
            block[name] = block.get(name, "") + delta[its]
        elif kind == "message_delta":
            usage = whole["usage"] | event["usage"]
            whole |= event["delta"] | {"usage": usage}
        elif kind == "message_stop":
            return whole | {"content": [_whole(block) for _, block in sorted(blocks.items())]}
    raise ValueError("no end")


def _whole(block: dict[str, Any]) -> dict[str, Any]:
    """Return a block with its input as a value; a text that was cut off is none, as the engine has it."""
    if block["type"] != "tool_use":
        return block
    try:
        return block | {"input": json_text.parse(block.get("input", ""))}
    except ValueError:
        return block | {"input": {}}
