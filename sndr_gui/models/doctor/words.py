"""Causes and reasons in a few words, and the page of the window on which something can be done about each."""

from __future__ import annotations

from dataclasses import dataclass

from engine_host.protocol.bench.diagnosis import SlowCause, SlowReason
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr, translated
from sndr_gui.kit import formats
from sndr_gui.kit.formats import duration

SPANS = (
    (tr("the last minute"), 1.0),
    (tr("the last 10 minutes"), 10.0),
    (tr("the last hour"), 60.0),
    (tr("the last day"), 1440.0),
    (tr("the last week"), 10_080.0),
)
"""How far back to look, in minutes."""


def missing_word(missing: str) -> str:
    """Return what was not measured in the language: a message of its own, or an engine and its parts."""
    said = translated(missing)
    name, colon, parts = missing.partition(": ")
    if said != missing or not colon:
        return said
    return f"{name}: {', '.join(map(translated, parts.split(', ')))}"


def span_words(minutes: float) -> str:
    """Return the time looked at, as it is offered; one that is not is told as a length."""
    return next(
        (words for words, known in SPANS if known == minutes),
        tr("the last {duration}", duration=duration(minutes * 60)),
    )


@dataclass(frozen=True)
class Remedy:
    """The page on which a cause can be looked at or mended."""

    page: str
    button: str


_FIT, _LAUNCH, _MONITOR = (
    Remedy("fit", tr("Open Fit")),
    Remedy("launch", tr("Open Launch")),
    Remedy("monitor", tr("Open Monitor")),
)
_CAUSES = {
    SlowReason.THROTTLED: (tr("GPU throttled"), _MONITOR),
    SlowReason.PCIE_NARROW: (tr("Narrow PCIe link"), _MONITOR),
    SlowReason.CPU_BUSY: (tr("CPU saturated"), _MONITOR),
    SlowReason.RAM_SHORT: (tr("RAM full"), _MONITOR),
    SlowReason.QUEUED: (tr("Requests queue"), _FIT),
    SlowReason.KV_FULL: (tr("KV cache full"), _FIT),
    SlowReason.PREEMPTED: (tr("Requests preempted"), _FIT),
    SlowReason.PREFIX_MISSED: (tr("Prompts recomputed"), _MONITOR),
    SlowReason.DRAFTS_REFUSED: (tr("Draft tokens rejected"), _LAUNCH),
    SlowReason.EAGER: (tr("No compiled graphs"), _LAUNCH),
    SlowReason.ON_PROCESSOR: (tr("Runs on the CPU"), _LAUNCH),
    SlowReason.ATTENTION_BACKEND: (tr("Slower attention"), _LAUNCH),
    SlowReason.ROOFLINE: (tr("As fast as the memory allows"), _FIT),
}
_REASONS = {
    Reason.ENGINE_CRASHED: tr("crashed"),
    Reason.ENGINE_KILLED: tr("ended by somebody"),
    Reason.ENGINE_START_TIMEOUT: tr("cold start took too long"),
    Reason.ENGINE_UNUSABLE: tr("driver or library"),
    Reason.FLAG_UNSUPPORTED: tr("unknown argument"),
    Reason.GGUF_TOO_NEW: tr("newer than the engine"),
    Reason.GGUF_TRUNCATED: tr("corrupt file"),
    Reason.ILLEGAL_INSTRUCTION: tr("wrong processor"),
    Reason.KERNEL_UNSUPPORTED: tr("not for this GPU"),
    Reason.KV_TYPE_UNSUPPORTED: tr("KV cache type not possible"),
    Reason.MODEL_ARCHITECTURE_UNKNOWN: tr("kind of model unknown"),
    Reason.MODEL_FILE_DAMAGED: tr("corrupt file"),
    Reason.MODEL_FILE_MISSING: tr("missing file"),
    Reason.MODEL_WEIGHTS_MISMATCH: tr("model and engine do not fit"),
    Reason.NOT_GGUF: tr("not a GGUF file"),
    Reason.PORT_IN_USE: tr("port in use"),
    Reason.QUANTIZATION_UNSUPPORTED: tr("quantisation not possible"),
}


def title_of(cause: SlowCause) -> str:
    """Return a cause in two or three words."""
    known = _CAUSES.get(cause.reason)
    return known[0] if known is not None else cause.reason.value.replace("_", " ").capitalize()


def remedy_of(cause: SlowCause) -> Remedy:
    """Return the page where something can be done about a cause."""
    known = _CAUSES.get(cause.reason)
    return known[1] if known is not None else _MONITOR


def reason_words(reason: Reason) -> str:
    """Return the reason of a failure in two or three words."""
    return _REASONS.get(reason, reason.value.replace("_", " "))


def evidence_words(cause: SlowCause) -> str:
    """Return what was measured, as names with their figures."""
    parts = [
        f"{name.replace('_', ' ')} {formats.number(value, ',.4g')}"
        if isinstance(value, float)
        else f"{name.replace('_', ' ')} {value}"
        for name, value in cause.evidence.items()
    ]
    return "  ·  ".join(parts)


def fix_words(cause: SlowCause) -> str:
    """Return what would help, with the settings that do it."""
    if cause.fix is None:
        return ""
    settings = " ".join(f"--set {name}={str(value).lower()}" for name, value in cause.fix.settings.items())
    return f"{cause.fix.text} ({settings})" if settings else cause.fix.text
