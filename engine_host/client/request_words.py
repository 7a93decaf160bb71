"""Requests in words, for the command line and the window: where prompts part, and texts to be shown."""

import json

from engine_host.core.outside import json_text
from engine_host.core.visible import visible
from engine_host.protocol.endpoint.requests import Divergence, KeptText, PrefixReason, PrefixTurn, PromptPart
from engine_host.protocol.language import tr

_REASONS = {
    PrefixReason.FIRST_TURN: tr("first turn"),
    PrefixReason.REUSED: tr("reused"),
    PrefixReason.TOOLS_CHANGED: tr("tools changed"),
    PrefixReason.SYSTEM_CHANGED: tr("system text changed"),
    PrefixReason.MESSAGE_CHANGED: tr("a message was edited"),
    PrefixReason.MESSAGE_INSERTED: tr("a message was put in between"),
    PrefixReason.MESSAGES_REMOVED: tr("messages were removed"),
    PrefixReason.OTHER_ENGINE: tr("another engine answered"),
    PrefixReason.CHECKPOINT: tr("reused up to the last state that was kept"),
    PrefixReason.CACHE_COLD: tr("same prompt, cold cache: another slot, or evicted"),
    PrefixReason.NOT_MEASURED: tr("not reported by the engine"),
}
_LONGEST_LINE = 2_000
_LONGEST = 200_000


def turn_text(turn: PrefixTurn) -> str:
    """Return what became of a turn's prefix: where it parts from the turn before, and where a hit ended."""
    if turn.side:
        return tr("beside the conversation")
    text = _parted(turn)
    return f"{text}; {held}" if (held := checkpoint_text(turn)) else text


def checkpoint_text(turn: PrefixTurn) -> str:
    """Return at which state a hit ended and what that cost; nothing where it cost nothing."""
    if not turn.checkpoint_again:
        return ""
    again = f"{turn.checkpoint_again:,}"
    if not turn.checkpoint:
        return tr("no state of it was kept, so that {again} tokens were computed again", again=again)
    return tr(
        "the hit ended at the state kept at {checkpoint} tokens, so that {again} were computed again",
        checkpoint=f"{turn.checkpoint:,}",
        again=again,
    )


def _parted(turn: PrefixTurn) -> str:
    reason = _REASONS[turn.reason]
    if turn.diverged is None:
        return reason
    if turn.reason is PrefixReason.REUSED:
        return tr(
            "{reason}, though {place_text} changed", reason=reason, place_text=place_text(turn.diverged)
        )
    return tr("{reason} at {place_text}", reason=reason, place_text=place_text(turn.diverged))


def place_text(found: Divergence) -> str:
    """Return the place at which two prompts part."""
    if found.part is PromptPart.TOOLS:
        return tr("the tools")
    if found.part is PromptPart.SYSTEM:
        return (
            tr("part {number} of the system's text", number=found.number)
            if found.of > 1
            else tr("the system's text")
        )
    return tr("message {number} ({role})", number=found.number, role=found.role)


def pretty(kept: KeptText) -> str:
    """Return JSON with its lines; any other text, and one of which a part is missing, as it is."""
    if kept.left_out:
        return tr(
            "{text}\n[{left_out} more bytes were not kept]", text=kept.text, left_out=f"{kept.left_out:,}"
        )
    try:
        return json.dumps(json_text.parse(kept.text), indent=2, ensure_ascii=False)
    except ValueError:
        return kept.text


def readable(text: str) -> str:
    """Return a text to be shown: control and direction characters as pictures, long lines and texts cut."""
    if len(text) > _LONGEST:
        text = tr(
            "{text}\n[{text_2} more characters; export shows all]",
            text=text[:_LONGEST],
            text_2=f"{len(text) - _LONGEST:,}",
        )
    return "\n".join(_cut(line) for line in visible(text).split("\n"))


def _cut(line: str) -> str:
    left_out = len(line) - _LONGEST_LINE
    return (
        line
        if left_out <= 0
        else tr("{line}… ({left_out} more)", line=line[:_LONGEST_LINE], left_out=f"{left_out:,}")
    )
