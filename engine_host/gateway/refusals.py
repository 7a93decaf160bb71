"""Tell apart the errors of an engine whose own words are ambiguous, by requests that cost nothing."""

import asyncio
import json
from dataclasses import replace
from typing import Any

from engine_host.core.outside import json_text
from engine_host.engines.llamacpp.command import MAX_EMBEDDING_BATCH
from engine_host.gateway import error_answers as faults
from engine_host.gateway import modalities
from engine_host.gateway.directory import Target
from engine_host.gateway.routing.failures import provider_refusal
from engine_host.gateway.upstream import UpstreamLostError, fetch
from engine_host.protocol.operations.definition import Method

_PATIENCE = 5.0
_UNREAD = {400, 500}
_MOST_COUNTED = 3
"""Texts of a request that are counted, the longest ones."""
_TEXTS = {"text", "content", "system", "thinking"}


async def refusal(
    target: Target, path: str, body: bytes, status: int, answer: bytes, reader: str | None
) -> faults.EndpointError:
    """The engine's refusal of a request, by what it is and not by how an engine puts it.

    llama.cpp answers 500 to a wrong tool or schema as to a failure of its own, and clients send a request
    that met a 500 again: it becomes 400 where `reader`, a path of the engine that reads the same request and
    computes nothing, fails too. vLLM's messages in Anthropic's form do not say what was too long, and its
    500 does not say whether it lives on. Of a picture that its model does not take each says something else.
    Neither says what to do about a prompt that is too long.
    """
    if target.provider is not None:
        return provider_refusal(target, status, answer)
    fault = await _told_apart(target, path, body, status, answer, reader)
    if fault.code != "context_length_exceeded":
        return fault
    # Agents look for the engine's own words, so these stay first.
    said = fault.message.rstrip(".")
    return replace(fault, message=f"{said}. Send less{_more_context(target)}.")


def _more_context(target: Target) -> str:
    """Return how the engine would hold more, or the empty string where its model was made for no more."""
    if target.reranking or target.embeddings:
        return ""
    made_for = target.context_trained
    if made_for is not None and made_for <= target.context:
        return f": {target.engine_name} has the whole context that its model was made for"
    known = "" if made_for is None else f" (its model was made for {made_for})"
    return f", or start {target.engine_name} with a longer --context{known}"


async def _told_apart(
    target: Target, path: str, body: bytes, status: int, answer: bytes, reader: str | None
) -> faults.EndpointError:
    fault = faults.engine_fault(status, answer)
    was_read = status not in _UNREAD or (status == 500 and target.usage_on_request)
    other = None if was_read else modalities.why_refused(target, body, fault.message)
    if other is not None and fault.code != "context_length_exceeded":
        return other
    if status == 500 and reader is not None:
        read, _ = await _ask(target, "POST", reader, body)
        return faults.unreadable(fault) if read in _UNREAD else fault
    if status == 500 and target.embeddings and target.native_infill:
        return await _too_long_to_embed(target, body, fault)
    if status >= 500 and target.usage_on_request and await is_dead(target):
        return faults.engine_ended(target.engine_name, stopped=False, message=fault.message)
    # llama.cpp says itself what was too long.
    if status == 400 and faults.form_of(path) is faults.Form.ANTHROPIC and target.usage_on_request:
        return await _explained(target, body, fault)
    return fault


async def check_schema(target: Target, schema: dict[str, Any]) -> None:
    """Refuse a schema that llama.cpp cannot keep; of a completion it then leaves it out without a word.

    Raises EndpointError 400.
    """
    wanted = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    question = {"messages": [{"role": "user", "content": ""}], "response_format": wanted}
    status, answer = await _ask(target, "POST", "/apply-template", json.dumps(question).encode())
    if status in _UNREAD:
        raise faults.unreadable(faults.engine_fault(status, answer))


async def is_dead(target: Target) -> bool:
    """Return True if an engine reports that it no longer computes, or does not answer.

    vLLM's API server outlives its EngineCore by some seconds, in which `/health` is 503.
    """
    status, _ = await _ask(target, "GET", "/health")
    return status in {0, 503}


async def _too_long_to_embed(
    target: Target, body: bytes, fault: faults.EndpointError
) -> faults.EndpointError:
    """The same refusal, as one of a text that is too long where one is; llama.cpp takes the blame itself."""
    most = min(target.context, MAX_EMBEDDING_BATCH)
    given = json.loads(body).get("input")
    texts = given if isinstance(given, list) and not all(isinstance(one, int) for one in given) else [given]
    longest = sorted((one for one in texts if isinstance(one, str | list)), key=len, reverse=True)
    for text in longest[:_MOST_COUNTED]:
        tokens = len(text) if isinstance(text, list) else await _count(target, text)
        if tokens is not None and tokens >= most:
            # Its advice is about an option that no setting of an engine here has.
            said = fault.message.partition(". increase ")[0]
            said = f"{said}: a text may have {most} tokens here"
            return faults.too_long(replace(fault, message=said), tokens, most)
    return fault


async def _count(target: Target, text: str) -> int | None:
    """The number of tokens that llama.cpp makes of a text; None where it does not say."""
    status, answer = await _ask(target, "POST", "/tokenize", json.dumps({"content": text}).encode())
    try:
        tokens = json_text.parse_object(answer).get("tokens") if status == 200 else None
    except ValueError:
        tokens = None
    return len(tokens) if isinstance(tokens, list) else None


async def _explained(target: Target, body: bytes, fault: faults.EndpointError) -> faults.EndpointError:
    """The same refusal, as one of a prompt that is too long where the text of the request alone is."""
    request = json.loads(body)
    text = "\n".join([*_texts(request), json.dumps(request["tools"]) if request.get("tools") else ""])
    question = json.dumps({"model": request.get("model"), "prompt": text}).encode()
    status, answer = await _ask(target, "POST", "/tokenize", question)
    if status == 400:
        is_too_long = faults.engine_fault(status, answer).code == "context_length_exceeded"
        return faults.too_long(fault) if is_too_long else fault
    if status != 200:
        return fault
    try:
        counted = json_text.parse_object(answer)
    except ValueError:
        return fault
    count, most = counted.get("count"), counted.get("max_model_len")
    if isinstance(count, int) and isinstance(most, int) and count >= most:
        return faults.too_long(fault, count, most)
    return fault


def _texts(value: Any) -> list[str]:
    """The texts in a request of Anthropic's form: of the system, of messages, of what tools answered."""
    if isinstance(value, list):
        return [text for one in value for text in ([one] if isinstance(one, str) else _texts(one))]
    if not isinstance(value, dict):
        return []
    found = [one for name, one in value.items() if name in _TEXTS and isinstance(one, str)]
    return found + [text for one in value.values() if isinstance(one, dict | list) for text in _texts(one)]


async def _ask(target: Target, method: Method, path: str, body: bytes = b"") -> tuple[int, bytes]:
    """A short question: status and answer; status 0 without a connection, 408 when it takes too long."""
    try:
        async with asyncio.timeout(_PATIENCE):
            return await fetch(target, method, path, body)
    except UpstreamLostError:
        return 0, b""
    except TimeoutError:
        return 408, b""
