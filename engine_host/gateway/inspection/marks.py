"""The parts of a prompt in order, each as a salted hash and its size: enough to see where two prompts part.

No text is kept. The salt lives as long as the host, so a hash says nothing to anybody else.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from engine_host.protocol.endpoint.requests import PromptPart

MOST_PARTS = 4096
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function", "reasoning"})
_OF_THE_SYSTEM = frozenset({"system", "developer"})
# It marks how far a prompt is to be cached, moves on with each turn, and is no part of a prompt.
_NOT_IN_PROMPTS = frozenset({"cache_control"})
_DEEPEST = 6


class Mark(NamedTuple):
    """One part of a prompt: its kind, whose it is, its number among those of its kind, its hash and bytes."""

    kind: PromptPart
    role: str
    number: int
    digest: int
    size: int


def marks_of(body: Mapping[str, Any], salt: bytes) -> tuple[Mark, ...]:
    """Return the parts of a chat in any of the forms that clients write, in the order of a prompt.

    Empty for what is no chat. Of very many parts those after the limit are one.
    """
    made = [_mark(*part, salt) for _, part in zip(range(MOST_PARTS), _parts(body), strict=False)]
    return tuple(made)


def first_words(marks: tuple[Mark, ...]) -> int | None:
    """Return the hash of the first thing that the user said; None where there is none."""
    return next((mark.digest for mark in marks if mark.kind is PromptPart.MESSAGE), None)


def _parts(body: Mapping[str, Any]) -> Iterator[tuple[PromptPart, str, int, Any]]:
    messages = body.get("messages", body.get("input"))
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    if not isinstance(messages, list):
        return
    tools = body.get("tools")
    if isinstance(tools, list) and tools:
        yield PromptPart.TOOLS, "", 1, tools
    number = 0
    for system in (body.get("system"), body.get("instructions")):
        for block in system if isinstance(system, list) else [system] if system else []:
            number += 1
            yield PromptPart.SYSTEM, "system", number, block
    leading = True
    for place, message in enumerate(messages, 1):
        role = _role(message)
        leading = leading and role in _OF_THE_SYSTEM
        if leading:
            number += 1
            yield PromptPart.SYSTEM, role, number, message
        else:
            yield PromptPart.MESSAGE, role, place, message


def _role(message: object) -> str:
    """Return whose a message is, in known words: what a client writes there is text from outside."""
    if not isinstance(message, Mapping):
        return "other"
    role, kind = message.get("role"), message.get("type")
    if isinstance(role, str) and role in _ROLES:
        return role
    if isinstance(kind, str):
        if kind.endswith("_output"):
            return "tool"
        if kind.endswith("_call"):
            return "assistant"
        if kind == "reasoning":
            return kind
    return "other"


def _mark(kind: PromptPart, role: str, number: int, value: Any, salt: bytes) -> Mark:
    text = _text(value)
    if any(name in text for name in _NOT_IN_PROMPTS):
        text = _text(_bare(value, _DEEPEST))
    data = text.encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(data, digest_size=8, key=salt).digest()
    return Mark(kind, role, number, int.from_bytes(digest), len(data))


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _bare(value: Any, depth: int) -> Any:
    """Return the value without what is in no prompt; deeper than agents write, all of it stays."""
    if depth == 0:
        return value
    if isinstance(value, dict):
        return {name: _bare(one, depth - 1) for name, one in value.items() if name not in _NOT_IN_PROMPTS}
    if isinstance(value, list):
        return [_bare(one, depth - 1) for one in value]
    return value
