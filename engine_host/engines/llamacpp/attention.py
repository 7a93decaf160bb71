"""Read off llama-server's log whether attention is computed in one pass, and what kept it from that."""

import re

from engine_host.protocol.engines import Attention

FLASH, PLAIN = "flash attention", "no flash attention"
# "0.01.158.431 I llama_context: flash_attn            = disabled"; from the beginning of a line, so that no
# name of a model, which is printed too, tells one.
_BEGINNING = r"(?:[\d.]{1,20} [A-Z] )?"
_ASKED = re.compile(rf"{_BEGINNING}llama_context: flash_attn {{0,20}}= (?P<kind>auto|enabled|disabled)$")
_RESOLVED = re.compile(
    rf"{_BEGINNING}(?:resolve_fused_ops|sched_reserve): "
    r"(?P<op>Flash Attention|fused Gated Delta Net \(\w{1,20}\))"
    r" (?:was auto, set to |not supported, set to )?(?P<kind>enabled|disabled)$"
)
_ELSEWHERE = re.compile(
    rf"{_BEGINNING}\w{{1,40}}: layer \d{{1,5}} is assigned to device (?P<device>\S{{1,40}}) but .{{1,80}}"
    r" is assigned to device (?P<other>\S{1,40}) \(usually due to missing support\)$"
)
_GROK = re.compile(
    rf"{_BEGINNING}llama_init_from_model: flash_attn is not compatible with Grok - forcing off$"
)


def attention_of(line: str, known: Attention) -> Attention:
    """Return what is known of the attention after a line."""
    if (found := _ASKED.match(line)) is not None:
        kind = found["kind"]
        if known.backend or kind == "auto":
            # The second context is a drafter's; of `auto` a later line tells what became of it.
            return known
        return known.model_copy(
            update={"backend": FLASH if kind == "enabled" else PLAIN, "asked": not known.why}
        )
    if (found := _RESOLVED.match(line)) is not None:
        missing = found["kind"] == "disabled"
        passed = (
            (*known.passed_over, found["op"]) if missing and found["op"] not in known.passed_over else None
        )
        told: dict[str, object] = {} if passed is None else {"passed_over": passed}
        if found["op"] == "Flash Attention" and not known.backend:
            told["backend"] = PLAIN if missing else FLASH
        return known.model_copy(update=told)
    if not known.why and (_ELSEWHERE.match(line) or _GROK.match(line)):
        return known.model_copy(update={"why": line})
    return known
