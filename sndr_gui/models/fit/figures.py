"""The answer of Fit in figures and words."""

from __future__ import annotations

from dataclasses import dataclass

from engine_host.protocol.language import tr
from engine_host.protocol.launch.fit import FitReport, Verdict
from sndr_gui.kit import formats
from sndr_gui.models.fit.device_memory import VERDICTS, device_memories


@dataclass(frozen=True)
class Figure:
    """One number in front: caption, value, note, and why it is not there."""

    caption: str
    value: str
    note: str
    tone: str = ""


def figures(report: FitReport | None) -> tuple[Figure, ...]:
    """Return the four figures in front."""
    if report is None:
        dash = formats.UNMEASURED
        return tuple(
            Figure(caption, dash, "")
            for caption in (tr("Verdict"), tr("Longest context"), tr("Most streams"), tr("KV per token"))
        )
    word, tone = VERDICTS[report.verdict]
    pool = (
        tr("{kv_pool_tokens} tokens in total", kv_pool_tokens=formats.number(report.kv_pool_tokens))
        if report.kv_pool_tokens
        else ""
    )
    bounded = report.verdict is not Verdict.CANNOT_RUN
    return (
        Figure(tr("Verdict"), word, _used(report), tone),
        Figure(
            tr("Longest context"),
            bound(report.largest_context) if bounded else formats.UNMEASURED,
            tr("tokens, {streams}", streams=formats.plural(report.streams, "stream")),
        ),
        Figure(
            tr("Most streams"),
            bound(report.most_streams) if bounded else formats.UNMEASURED,
            tr("of {context} tokens", context=formats.number(report.context)),
        ),
        Figure(tr("KV per token"), formats.size(report.kv_bytes_per_token), pool),
    )


def company(report: FitReport | None) -> str:
    """The running engines that a start is counted beside, or in place of; empty without any."""
    if report is None:
        return ""
    said = []
    if report.beside:
        names = ", ".join(one.name for one in report.beside)
        said.append(tr("Beside {engines}, which go on running.", engines=names))
    if report.instead_of:
        names = ", ".join(one.name for one in report.instead_of)
        said.append(tr("In place of {engines}, whose memory counts as free.", engines=names))
    return " ".join(said)


def bound(most: int) -> str:
    """Return a largest value; "none" where not even the least fits."""
    return formats.number(most) if most else tr("none")


def _used(report: FitReport) -> str:
    """Return the needed and the usable memory of the fullest device."""
    devices = device_memories(report)
    fullest = max(devices, key=lambda device: device.needed - device.usable, default=None)
    return "" if fullest is None else formats.used_of(fullest.needed, fullest.usable)
