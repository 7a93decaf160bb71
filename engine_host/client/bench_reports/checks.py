"""Checks of answers as rows, for the terminal, documents and the window."""

from collections.abc import Sequence

from engine_host.protocol.bench.checks import Check
from engine_host.protocol.language import tr


def headings() -> tuple[str, ...]:
    """Return those of the columns of `check_rows`."""
    return tr("check"), tr("outcome"), tr("why")


def check_rows(checks: Sequence[Check]) -> list[list[str]]:
    """Return a row for each check; of one that passed with something left unjudged, that."""
    return [[check.title, tr(check.outcome.value), check.why or _unjudged(check)] for check in checks]


def _unjudged(check: Check) -> str:
    said = check.evidence.get("recall") or check.evidence.get("note")
    return tr("recall {share}", share=said) if "recall" in check.evidence else str(said or "")
