"""Compare a turn of a conversation with the one before it: where the prompts part, and what that cost."""

from dataclasses import dataclass

from engine_host.gateway.inspection.marks import Mark, first_words
from engine_host.protocol.endpoint.requests import Divergence, PrefixReason, PrefixTurn, PromptPart

_MOST_AHEAD = 64
"""Parts among which a part that moved is looked for."""
_FEW_TOKENS = 64
_FEW_SHARE = 0.05
"""Tokens that are read again in any case: the end of a template, the rest of a block, a dropped thought."""


@dataclass(frozen=True)
class Turn:
    """One request as it is compared; times in seconds, `prefill` from its slot to the first content.

    `checkpoints`: the engine finds a beginning again up to a state that it kept; `step` is how many tokens
    these are apart at most.
    """

    request: str
    at: float
    engine: str
    model: str
    marks: tuple[Mark, ...]
    prompt_tokens: int | None
    cached_tokens: int | None
    prefill: float | None
    checkpoints: bool = False
    step: int | None = None


def shared_parts(before: tuple[Mark, ...], now: tuple[Mark, ...]) -> int:
    """Return how many parts from the beginning are the same."""
    count = 0
    for old, new in zip(before, now, strict=False):
        if (old.digest, old.kind) != (new.digest, new.kind):
            break
        count += 1
    return count


def same_conversation(before: tuple[Mark, ...], now: tuple[Mark, ...]) -> bool:
    """Return False for a request beside a conversation: it begins with other words in every part."""
    return shared_parts(before, now) > 0 or first_words(before) == first_words(now) is not None


def diverged(before: tuple[Mark, ...], now: tuple[Mark, ...]) -> tuple[PrefixReason, Divergence] | None:
    """Return where a prompt leaves the one before it, and how; None where it only goes on."""
    shared = shared_parts(before, now)
    if shared == len(before):
        return None
    old = before[shared]
    new = now[shared] if shared < len(now) else None
    place = new if new is not None and new.kind is old.kind else old
    of = sum(mark.kind is old.kind for mark in before)
    kept = sum(mark.size for mark in before[:shared])
    whole = sum(mark.size for mark in before)
    found = Divergence(
        part=old.kind, role=place.role, number=place.number, of=of, bytes_kept=kept, bytes_before=whole
    )
    return _how(before, now, shared), found


def _how(before: tuple[Mark, ...], now: tuple[Mark, ...], shared: int) -> PrefixReason:
    old = before[shared]
    new = now[shared] if shared < len(now) else None
    kinds = {old.kind} if new is None else {old.kind, new.kind}
    if PromptPart.TOOLS in kinds:
        return PrefixReason.TOOLS_CHANGED
    if PromptPart.SYSTEM in kinds:
        return PrefixReason.SYSTEM_CHANGED
    if new is None or _among(new, before[shared + 1 :]):
        return PrefixReason.MESSAGES_REMOVED
    if _among(old, now[shared + 1 :]):
        return PrefixReason.MESSAGE_INSERTED
    return PrefixReason.MESSAGE_CHANGED


def _among(mark: Mark, others: tuple[Mark, ...]) -> bool:
    return any(mark.digest == other.digest for other in others[:_MOST_AHEAD])


def compared(before: Turn | None, now: Turn, *, side: bool = False) -> PrefixTurn:
    """Return what became of a turn's prompt beside the turn before; None stays for what was not measured."""
    again = _read_again(before, now)
    found = diverged(before.marks, now.marks) if before is not None else None
    held = _held_back(before, now, found[1] if found is not None else None)
    return PrefixTurn(
        request=now.request,
        at=now.at,
        engine=now.engine,
        model=now.model,
        parts=len(now.marks),
        prompt_tokens=now.prompt_tokens,
        cached_tokens=now.cached_tokens,
        read_again=again,
        prefill_seconds=now.prefill,
        lost_seconds=_lost(now, again),
        checkpoint=now.cached_tokens if held is not None else None,
        checkpoint_again=held,
        reason=_reason(before, now, again, found[0] if found is not None else None),
        diverged=found[1] if found is not None else None,
        side=side,
    )


def _read_again(before: Turn | None, now: Turn) -> int | None:
    if before is None or before.prompt_tokens is None:
        return None
    if now.prompt_tokens is None or now.cached_tokens is None:
        return None
    return max(0, min(before.prompt_tokens, now.prompt_tokens) - now.cached_tokens)


def _held_back(before: Turn | None, now: Turn, found: Divergence | None) -> int | None:
    """Return the tokens from the state where a hit ended to where the prompts part; None without states."""
    if not now.checkpoints or before is None or before.engine != now.engine:
        return None
    if before.prompt_tokens is None or now.prompt_tokens is None or now.cached_tokens is None:
        return None
    alike = before.prompt_tokens
    if found is not None:
        alike = round(alike * found.bytes_kept / max(1, found.bytes_before))
    return max(0, min(alike, now.prompt_tokens) - now.cached_tokens)


def _lost(now: Turn, again: int | None) -> float | None:
    """Return the share of the prompt's time that went into tokens of the turn before, in seconds."""
    if again is None or now.prefill is None or now.prompt_tokens is None or now.cached_tokens is None:
        return None
    read = now.prompt_tokens - now.cached_tokens
    return now.prefill * min(1.0, again / read) if read > 0 else 0.0


def _reason(before: Turn | None, now: Turn, again: int | None, changed: PrefixReason | None) -> PrefixReason:
    if before is None:
        return PrefixReason.FIRST_TURN
    if again is not None and _few(again, before.prompt_tokens or 0):
        # Also of a text that changed: engines leave out what is none for the model, as a line about billing.
        return PrefixReason.REUSED
    if changed is not None:
        return changed
    if before.engine != now.engine:
        return PrefixReason.OTHER_ENGINE
    if again is None:
        return PrefixReason.NOT_MEASURED
    # Of more than a step a state was there once, and is not any more.
    nearest = again < now.step if now.step is not None else bool(now.cached_tokens)
    return PrefixReason.CHECKPOINT if now.checkpoints and nearest else PrefixReason.CACHE_COLD


def _few(again: int, before: int) -> bool:
    """Return True if next to nothing was read again."""
    return again <= max(_FEW_TOKENS, before * _FEW_SHARE) and again < before / 2
