"""Findings in a person's language: their ids and values travel, and their sentences are made here."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from engine_host.client.language.catalogue import language, translated
from engine_host.core.findings.table import TEXTS, filled
from engine_host.core.findings.text import Text
from engine_host.protocol.launch.plans import Finding


def worded(finding: Finding) -> Finding:
    """Return a finding in the installed language; what is not in the table stays as the host said it."""
    if language() == "en":
        return finding
    for row in _rows(finding.id):
        # Several sentences may have one id: the one that these values make is the one that was said.
        if _filled(row.message, finding.evidence) != finding.message:
            continue
        fix = finding.fix
        if fix is not None and fix.text:
            said = _filled(row.fix, finding.evidence) if row.fix else None
            text = (
                _filled(translated(row.fix), finding.evidence) if said == fix.text else translated(fix.text)
            )
            fix = fix.model_copy(update={"text": text or fix.text})
        message = _filled(translated(row.message), finding.evidence)
        return finding.model_copy(update={"message": message or finding.message, "fix": fix})
    return finding


@cache
def _rows(finding: str) -> tuple[Text, ...]:
    return tuple(row for key, row in TEXTS.items() if key.partition("/")[0] == finding)


def _filled(template: str, values: Mapping[str, Any]) -> str | None:
    """Return a sentence with its values; None where it names one that is not there."""
    try:
        return filled(template, values).strip()
    except (KeyError, IndexError, ValueError, TypeError, AttributeError):
        return None
