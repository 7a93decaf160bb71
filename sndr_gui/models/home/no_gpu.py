"""Why a machine lists no GPU: in a word for a line, and in sentences with what to do."""

from __future__ import annotations

from engine_host.protocol.host import ABSENCE_WORDS, HostInfo
from engine_host.protocol.language import tr, translated
from engine_host.protocol.launch.plans import Finding
from sndr_gui.kit import formats


def no_gpu_word(host: HostInfo) -> str:
    """Return the reason in a few words."""
    return translated(ABSENCE_WORDS[host.gpu_absence]) if host.gpu_absence else tr("no GPU")


def told_of_no_gpu(host: HostInfo | None) -> str:
    """Return the reason, what to do and its command, each in a line; empty where a GPU is listed."""
    return "\n".join(sentences(host.no_gpu)) if host is not None else ""


def sentences(finding: Finding | None) -> tuple[str, ...]:
    """Return a finding, its fix and its command; nothing of none."""
    if finding is None:
        return ()
    fix = finding.fix
    said = (finding.message, *((fix.text, fix.command or "") if fix is not None else ()))
    return tuple(formats.strip_backticks(one) for one in said if one)
