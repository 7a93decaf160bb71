"""What a probe reads out of each dialect's events, and what strangers may send instead."""

import json
from typing import Any

import pytest

from engine_host.connect.clients.definition import Dialect
from engine_host.connect.probe.dialects import FORMS, TOOL, Piece
from engine_host.core.sse import SseMessage

CHAT, RESPONSES, MESSAGES = (FORMS[one] for one in (Dialect.CHAT, Dialect.RESPONSES, Dialect.MESSAGES))


def event(data: Any) -> SseMessage:
    """An event with this JSON."""
    return SseMessage(json.dumps(data))


def test_chat() -> None:
    assert CHAT.piece(event({"choices": [{"delta": {"content": "hi"}}]})) == Piece("hi")
    call = {"function": {"name": TOOL, "arguments": "{"}}
    assert CHAT.piece(event({"choices": [{"delta": {"tool_calls": [call]}}]})) == Piece("", TOOL, "{")
    assert CHAT.piece(SseMessage("[DONE]")).ended
    assert CHAT.piece(event({"error": {"message": "no"}})).error == "no"


def test_responses() -> None:
    item = {"type": "function_call", "name": TOOL}
    assert RESPONSES.piece(event({"type": "response.output_item.added", "item": item})).tool == TOOL
    assert RESPONSES.piece(event({"type": "response.output_text.delta", "delta": "hi"})).text == "hi"
    assert RESPONSES.piece(event({"type": "response.incomplete"})).ended
    failed = {"type": "response.failed", "response": {"error": {"message": "no"}}}
    assert RESPONSES.piece(event(failed)).error == "no"


def test_messages() -> None:
    block = {"type": "tool_use", "name": TOOL}
    assert MESSAGES.piece(event({"type": "content_block_start", "content_block": block})).tool == TOOL
    delta = {"type": "input_json_delta", "partial_json": "{}"}
    assert MESSAGES.piece(event({"type": "content_block_delta", "delta": delta})).arguments == "{}"
    assert MESSAGES.piece(event({"type": "message_stop"})).ended
    assert MESSAGES.piece(event({"type": "error", "error": {"type": "overloaded"}})).error == "overloaded"


@pytest.mark.parametrize("form", FORMS.values(), ids=lambda form: str(form.dialect))
def test_what_strangers_send_is_no_error_of_ours(form: Any) -> None:
    odd: tuple[Any, ...] = (
        {}, {"choices": 1}, {"choices": [1]}, {"choices": [{"delta": {"tool_calls": [1], "content": 5}}]},
        {"type": ["x"]}, {"type": "content_block_delta", "delta": 1}, {"item": 3, "response": 4},
        {"type": "response.output_text.delta", "delta": {"a": 1}},
    )  # fmt: skip
    for data in odd:
        assert form.piece(event(data)) == Piece()
    for text in ("[]", "nonsense", "{" * 9999):
        with pytest.raises(ValueError, match=r".+"):
            form.piece(SseMessage(text))
    for listed in ({}, {"data": 1, "models": {}}, {"data": [1, {}, {"id": 2}], "models": [{"slug": None}]}):
        assert form.listed(listed) == {}
    assert len(form.piece(event({"error": {"message": "x" * 9999}})).error) == 500


def test_contexts_of_the_three_lists() -> None:
    assert CHAT.listed({"data": [{"id": "m", "context_length": 5}]}) == {"m": 5}
    assert RESPONSES.listed({"models": [{"slug": "m", "context_window": 5}]}) == {"m": 5}
    assert MESSAGES.listed({"data": [{"id": "m", "max_input_tokens": 5}, {"id": "n"}]}) == {"m": 5, "n": None}
