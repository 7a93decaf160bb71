"""A chat or a completion as a whole, out of a stream.

The `usage` of several answers that come as a whole is that of the first; in a stream each has its own, and
they add up.
"""

from collections.abc import Iterator
from typing import Any

from engine_host.gateway.openai.several import Sum, has_several_prompts, is_one

_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "n_predict")
_SHORT = 64
"""Tokens that a call's name surely has not."""
_TEXTS = ("content", "reasoning_content", "refusal")


def tells_all(body: dict[str, Any]) -> bool:
    """Return True where a stream of a chat has all that its whole answer has.

    It leaves out a beginning of the answer, log probabilities of tokens that are no text, and a call that is
    cut off before its name is whole, which a whole answer tells as a text.
    """
    messages = body.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    goes_on = isinstance(last, dict) and last.get("role") == "assistant"
    other = goes_on or _wants_probabilities(body) or body.get("verbose")
    return not other and not may_cut_a_call(body)


def may_cut_a_call(body: dict[str, Any]) -> bool:
    """Return True for so short a limit that a call may end before its name does."""
    limits = [body.get(name) for name in _LIMITS]
    short = any(isinstance(one, int | float) and 0 <= one <= _SHORT for one in limits)
    return short and bool(body.get("tools"))


def tells_all_of_text(body: dict[str, Any]) -> bool:
    """Return True where a stream of a completion has all that its whole answer has.

    Of a text that ends one it has the log probabilities, which a whole answer leaves out.
    """
    return not ((_wants_probabilities(body) and body.get("stop")) or body.get("verbose"))


def _wants_probabilities(body: dict[str, Any]) -> bool:
    # To a completion 0 are those of the chosen tokens alone.
    top = body.get("logprobs")
    return (top is not None and top is not False) or bool(body.get("n_probs"))


def gathered(told: Iterator[dict[str, Any]], body: dict[str, Any]) -> dict[str, Any]:
    """Return the answer that a stream tells in pieces. Raises TypeError, KeyError, AttributeError."""
    answer: dict[str, Any] = {}
    several = None if is_one(body) else Sum(one_prompt=not has_several_prompts(body))
    choices: dict[int, dict[str, Any]] = {}
    for piece in told:
        parts = piece.pop("choices")
        if several is not None and "usage" in piece:
            several.add(piece.pop("usage"))
            piece.pop("timings", None)
        answer |= piece
        for part in parts:
            _add(choices.setdefault(part["index"], {"index": part["index"]}), part)
    if isinstance(answer.get("object"), str):
        answer["object"] = answer["object"].removesuffix(".chunk")
    if several is not None and (usage := several.usage()) is not None:
        answer["usage"] = usage
    return {"choices": [_ended(choices[index]) for index in sorted(choices)], **answer}


def _add(choice: dict[str, Any], part: dict[str, Any]) -> None:
    """Add a piece to the choice that it belongs to."""
    if "text" in part:
        choice["text"] = choice.get("text", "") + (part["text"] or "")
        probabilities = (part.get("logprobs") or {}).get("content")
        if choice.setdefault("logprobs", None) is None and probabilities:
            choice["logprobs"] = {"content": []}
        if probabilities:
            choice["logprobs"]["content"] += probabilities
    delta = part.get("delta")
    if isinstance(delta, dict):
        message = choice.setdefault("message", {"role": "assistant", "content": None})
        for name in _TEXTS:
            if isinstance(delta.get(name), str):
                message[name] = (message.get(name) or "") + delta[name]
        for call in delta.get("tool_calls") or ():
            _call(message.setdefault("tool_calls", {}), call)
    choice["finish_reason"] = part.get("finish_reason") or choice.get("finish_reason")


def _call(calls: dict[int, dict[str, Any]], part: dict[str, Any]) -> None:
    call = calls.setdefault(part["index"], {"type": "function", "function": {"name": "", "arguments": ""}})
    if part.get("id"):
        call["id"] = part["id"]
    for name, text in (part.get("function") or {}).items():
        call["function"][name] += text or ""


def _ended(choice: dict[str, Any]) -> dict[str, Any]:
    """Return a choice with its calls as a list."""
    message = choice.get("message")
    if message is not None:
        message["content"] = message["content"] or ""
        if "tool_calls" in message:
            message["tool_calls"] = [call for _, call in sorted(message["tool_calls"].items())]
    return choice
