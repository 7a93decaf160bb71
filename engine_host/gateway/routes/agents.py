"""Make the engine's request out of an agent's, in the Responses or Messages form, and count its tokens."""

import json
import time
from dataclasses import replace
from functools import partial
from typing import Any

from engine_host.core.outside import json_text
from engine_host.gateway import error_answers as faults
from engine_host.gateway.call import Call
from engine_host.gateway.chat.forced_call import has_to_call
from engine_host.gateway.chat.request import check as check_chat
from engine_host.gateway.chat.request import repaired as repaired_chat
from engine_host.gateway.chat.tool_or_format import both
from engine_host.gateway.messages.checked import check as check_message
from engine_host.gateway.messages.events import MessageEvents
from engine_host.gateway.messages.from_chat import ChatAsMessage
from engine_host.gateway.messages.request import repaired as repaired_message
from engine_host.gateway.messages.to_chat import as_chat, wanted_format
from engine_host.gateway.openai import progress
from engine_host.gateway.passage import Passage, Two
from engine_host.gateway.responses import to_chat as responses_to_chat
from engine_host.gateway.responses.answer import Frame
from engine_host.gateway.responses.checked import check as check_response
from engine_host.gateway.responses.events import ResponseEvents
from engine_host.gateway.responses.failures import FailureTold
from engine_host.gateway.responses.from_chat import ChatAsResponse
from engine_host.gateway.responses.request import repaired as repaired_response
from engine_host.gateway.routes.calls import READER, as_calls, check_writes, counting, forced
from engine_host.gateway.routes.rows import Asked

# Of llama.cpp: each reads a request as the route that answers it does, and computes nothing.
COUNT_MESSAGES = "/v1/messages/count_tokens"
COUNT_RESPONSES = "/v1/responses/input_tokens"
_HAS_NOT = (404, 405, 501)
"""The statuses of a provider that has no such path."""
_OF_TOKENS = ("model", "messages", "tools", "chat_template_kwargs")
"""Fields of a chat that its tokens depend on."""


def responses(asked: Asked) -> Call:
    """Ask for an answer in the Responses form; raises EndpointError."""
    check_writes(asked)
    target = asked.target
    if target.provider is None:
        check_response(asked.body)
    body = repaired_response(asked.body, for_llamacpp=target.native_infill)
    name = "resp_" + asked.request_id.removeprefix("req_")
    frame = Frame(name, target.name, int(time.time()), asked.body, target.context)
    raw = _written(asked, body)
    if target.provider is not None:
        otherwise = _response_as_chat(asked, frame)
        passed = FailureTold(frame)
        return Call(asked.path, raw, asked.stream, passage=passed, otherwise=otherwise, otherwise_at=_HAS_NOT)
    if not target.native_infill:
        return Call(asked.path, raw, asked.stream, passage=FailureTold(frame))
    long = progress.is_long(raw, body)
    told = ResponseEvents(frame, hides_progress=long)
    raw = progress.with_progress(raw) if long else raw
    call = Call(asked.path, raw, asked.stream, passage=told, reader=COUNT_RESPONSES)
    if body.get("tool_choice") == "required":
        otherwise = _response_as_calls(asked, body, frame)
        return call if otherwise is None else forced(call, otherwise, "max_output_tokens")
    return both(body, call)


def _response_as_calls(asked: Asked, body: dict[str, Any], frame: Frame) -> Call | None:
    """Ask for calls alone; None for tools or words that no chat has."""
    try:
        chat = responses_to_chat.as_chat(body)
    except faults.EndpointError:
        return None
    passage = Two(ChatAsResponse(asked.request_id.removeprefix("req_")), ResponseEvents(frame))
    return as_calls(chat, asked.target, passage) if has_to_call(chat) else None


def _response_as_chat(asked: Asked, frame: Frame) -> Call | None:
    """Ask a provider without Responses for a chat; None for what no chat can say."""
    try:
        chat = responses_to_chat.as_chat(repaired_response(asked.body, for_llamacpp=True))
    except faults.EndpointError:
        return None
    passage = Two(ChatAsResponse(asked.request_id.removeprefix("req_")), ResponseEvents(frame))
    raw = json.dumps(chat, ensure_ascii=False).encode()
    return Call("/v1/chat/completions", raw, asked.stream, passage=passage)


def messages(asked: Asked) -> Call:
    """Ask for an answer in the Messages form; raises EndpointError."""
    check_writes(asked)
    check_message(asked.body)
    body = repaired_message(asked.body, for_llamacpp=asked.target.native_infill)
    raw = _written(asked, body)
    if asked.target.provider is not None:
        return _as_chat(asked)
    if not asked.target.native_infill:
        return Call(asked.path, raw, asked.stream, passage=MessageEvents(asked.request_id))
    wanted = wanted_format(body)
    # Of a chat it is not told which of several words ended it.
    long = progress.is_long(raw, body) and not body.get("stop_sequences")
    call = Call(asked.path, raw, asked.stream, passage=MessageEvents(asked.request_id), reader=COUNT_MESSAGES)
    if wanted is None and not long and not _is_any(body.get("tool_choice")):
        return call
    chat = as_chat(body)
    told = partial(ChatAsMessage, asked.request_id, asked.target.name)
    has_to = has_to_call(chat)
    if wanted is not None and not has_to:
        chat["response_format"] = wanted
    if long or "response_format" in chat:
        # The engine tells of a message neither its progress nor has it a format; the words are the same.
        written = json.dumps(chat, ensure_ascii=False).encode()
        written = progress.with_progress(written) if long else written
        call = Call("/v1/chat/completions", written, asked.stream, passage=told(), reader=READER)
        call = counting(call, chat, asked.target)
    return forced(call, as_calls(chat, asked.target, told())) if has_to else both(chat, call)


def _is_any(choice: object) -> bool:
    return isinstance(choice, dict) and choice.get("type") == "any"


def _as_chat(asked: Asked) -> Call:
    """Ask a provider, of which a chat is all that each of them knows; raises EndpointError."""
    # What the repairs for llama.cpp mend is what a chat cannot say either.
    body = repaired_message(asked.body, for_llamacpp=True)
    chat = as_chat(body)
    wanted = wanted_format(body)
    if wanted is not None and chat.get("tool_choice") != "required":
        chat["response_format"] = wanted
    for name in ("top_k", "thinking_budget_tokens", "chat_template_kwargs"):
        chat.pop(name, None)
    passage = ChatAsMessage(asked.request_id, asked.target.name)
    raw = json.dumps(chat, ensure_ascii=False).encode()
    return Call("/v1/chat/completions", raw, asked.stream, passage=passage)


def count_messages(asked: Asked) -> Call:
    """Count the tokens of a request in the Messages form; raises EndpointError."""
    check_writes(asked)
    check_message(asked.body)
    body = repaired_message(asked.body, for_llamacpp=asked.target.native_infill)
    return Call(asked.path, _written(asked, body), False)


def count_responses(asked: Asked) -> Call:
    """Count the tokens of a request in the Responses form; raises EndpointError."""
    check_writes(asked)
    check_response(asked.body)
    if not asked.target.native_infill:
        # vLLM counts no such request, but a chat of the same words.
        chat = responses_to_chat.as_chat(repaired_response(asked.body, for_llamacpp=True))
        return count_chat(replace(asked, body=chat))
    return Call(asked.path, _written(asked, repaired_response(asked.body, for_llamacpp=True)), False)


def count_chat(asked: Asked) -> Call:
    """Count the tokens of a chat; raises EndpointError."""
    check_writes(asked)
    check_chat(asked.body)
    body = repaired_chat(asked.body, for_llamacpp=asked.target.native_infill)
    if asked.target.native_infill:
        return Call(asked.path, _written(asked, body), False)
    question = {name: body[name] for name in _OF_TOKENS if body.get(name) is not None}
    return Call("/tokenize", json.dumps(question, ensure_ascii=False).encode(), False, passage=Counted())


class Counted(Passage):
    """Tells of vLLM's tokens how many they are."""

    def convert(self, body: bytes) -> bytes:
        """Return the count in OpenAI's form. Raises EndpointError 502."""
        try:
            count = json_text.parse_object(body)["count"]
        except (ValueError, KeyError) as error:
            raise faults.odd_answer() from error
        return json.dumps({"object": "response.input_tokens", "input_tokens": count}).encode()


def _written(asked: Asked, body: dict[str, Any]) -> bytes:
    """The client's own bytes where nothing has changed."""
    return asked.raw if body is asked.body else json.dumps(body, ensure_ascii=False).encode()
