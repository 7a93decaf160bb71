"""Read off vLLM's log which of its backends computes attention, and which better ones it passed over."""

import re

from engine_host.protocol.engines import Attention

_MOST_NAMES = 16
_NAME = r"[A-Z][A-Z0-9_]{1,40}"
# Of vLLM 0.32. They are matched from the beginning of a line's text, so that no path or name within it
# tells one.
_CHOSEN = re.compile(
    rf"Using (?P<name>{_NAME}) attention backend out of potential backends: "
    r"\[(?P<offered>[A-Z0-9_', ]{0,400})\]"
)
_ASKED = re.compile(rf"Using (?:AttentionBackendEnum\.)?(?P<name>{_NAME}) backend\.$")
# On a processor "Using CPU_MLA backend." is vLLM's own choice.
_ON_CUDA = re.compile(r"\[cuda\.py:\d{1,6}\] ?$")
_REFUSED = re.compile(rf"Cannot use (?:AttentionBackendEnum\.)?(?P<name>{_NAME}) backend on CPU\.")
_PRECLUDED = re.compile(
    r"--block-size \d{1,9} precluded higher-priority backend\(s\) "
    rf"(?P<names>{_NAME}(?:, {_NAME}){{0,{_MOST_NAMES}}})\. Using (?P<name>{_NAME}) instead"
)
_OLDER_FLASH = re.compile(
    r"(?:Cannot use FA|FA4)[^,]{1,250}, defaulting to FA version (?:2|4 if supported, otherwise FA2)\b"
)
# Said by the patch turboquant-grouped-attention (decision.py).
_OWN_KERNELS = re.compile(r"TurboQuant stays on vLLM's own kernels: .")
_LONGEST = 400
_ON_PROCESSOR = "CPU_ATTN"


def attention_of(text: str, beginning: str, known: Attention) -> Attention:
    """Return what is known of the attention after a line; its time and place are its `beginning`."""
    if "backend" in text:
        return _of_backend(text, beginning, known)
    doubt = "FA version" in text and _OLDER_FLASH.match(text)
    if not known.why and (doubt or ("TurboQuant" in text and _OWN_KERNELS.match(text))):
        return known.model_copy(update={"why": text[:_LONGEST]})
    return known


def _of_backend(text: str, beginning: str, known: Attention) -> Attention:
    if known.backend:
        # The first layers are the model's own; those of a drafter come after them.
        return known
    told: dict[str, object] = {}
    if (found := _PRECLUDED.match(text)) is not None:
        return known.model_copy(
            update={"passed_over": tuple(found["names"].split(", ")), "why": text[:_LONGEST]}
        )
    if (found := _CHOSEN.match(text)) is not None:
        names = re.findall(_NAME, found["offered"])[:_MOST_NAMES]
        told = {"backend": found["name"], "others": tuple(name for name in names if name != found["name"])}
    elif (found := _REFUSED.match(text)) is not None:
        told = {
            "backend": _ON_PROCESSOR,
            "passed_over": (found["name"],),
            "asked": True,
            "why": text[:_LONGEST],
        }
    elif _ON_CUDA.search(beginning) and (found := _ASKED.match(text)) is not None:
        told = {"backend": found["name"], "asked": True}
    return known.model_copy(update=told)
