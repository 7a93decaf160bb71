"""A request as it was at a moment: what came later is not known yet."""

from __future__ import annotations

from engine_host.protocol.engines import Request, RequestState

_LATER: dict[str, object] = {
    **dict.fromkeys(("ended_at", "generated_tokens", "decode_rate", "draft_tokens", "draft_accepted")),
    **dict.fromkeys(("pieces", "piece_rate")),
    **dict.fromkeys(("finish", "problem", "place", "prefill_tokens", "prefill_of")),
}
_BEFORE_THE_FIRST_TOKEN = ("ttft", "prompt_tokens", "cached_tokens", "prefill_seconds")


def as_of(request: Request, at: float) -> Request | None:
    """Return the request as it was at a time; None where it had not come yet."""
    if request.created_at > at:
        return None
    if request.ended_at is not None and request.ended_at <= at:
        return request
    passed = at - request.created_at
    if request.waited is None or passed < request.waited:
        state = RequestState.WAITING
    elif request.ttft is None or passed < request.ttft:
        state = RequestState.PREFILL
    else:
        return request.model_copy(update={**_LATER, "state": RequestState.DECODE})
    unknown: dict[str, object] = dict.fromkeys(_BEFORE_THE_FIRST_TOKEN)
    if state is RequestState.WAITING:
        unknown["waited"] = None
    return request.model_copy(update={**_LATER, **unknown, "state": state})
