"""Requests in words, for the command line and the window: where prompts part, and texts to be shown."""

import json

from engine_host.core.outside import json_text
from engine_host.core.visible import visible
from engine_host.protocol.endpoint.requests import Divergence, KeptText, PrefixReason, PrefixTurn, PromptPart

_REASONS = {
    PrefixReason.FIRST_TURN: "first turn",
    PrefixReason.REUSED: "reused",
    PrefixReason.TOOLS_CHANGED: "tools changed",
    PrefixReason.SYSTEM_CHANGED: "system text changed",
    PrefixReason.MESSAGE_CHANGED: "a message was edited",
    PrefixReason.MESSAGE_INSERTED: "a message was put in between",
    PrefixReason.MESSAGES_REMOVED: "messages were removed",
    PrefixReason.OTHER_ENGINE: "another engine answered",
    PrefixReason.CACHE_COLD: "same prompt, cold cache: another slot, or evicted",
    PrefixReason.NOT_MEASURED: "the engine did not tell",
}
_LONGEST_LINE = 2_000
_LONGEST = 200_000


def turn_text(turn: PrefixTurn) -> str:
    """Return what became of a turn's prefix, and where it parts from the turn before."""
    if turn.side:
        return "beside the conversation"
    reason = _REASONS[turn.reason]
    if turn.diverged is None:
        return reason
    if turn.reason is PrefixReason.REUSED:
        return f"{reason}, though {place_text(turn.diverged)} changed"
    return f"{reason} at {place_text(turn.diverged)}"


def place_text(found: Divergence) -> str:
    """Return the place at which two prompts part."""
    if found.part is PromptPart.TOOLS:
        return "the tools"
    if found.part is PromptPart.SYSTEM:
        return f"part {found.number} of the system's text" if found.of > 1 else "the system's text"
    return f"message {found.number} ({found.role})"


def pretty(kept: KeptText) -> str:
    """Return JSON with its lines; any other text, and one of which a part is missing, as it is."""
    if kept.left_out:
        return f"{kept.text}\n[{kept.left_out:,} more bytes were not kept]"
    try:
        return json.dumps(json_text.parse(kept.text), indent=2, ensure_ascii=False)
    except ValueError:
        return kept.text


def readable(text: str) -> str:
    """Return a text to be shown: control and direction characters as pictures, long lines and texts cut."""
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}\n[{len(text) - _LONGEST:,} more characters; export shows all]"
    return "\n".join(_cut(line) for line in visible(text).split("\n"))


def _cut(line: str) -> str:
    left_out = len(line) - _LONGEST_LINE
    return line if left_out <= 0 else f"{line[:_LONGEST_LINE]}… [{left_out:,} more]"
