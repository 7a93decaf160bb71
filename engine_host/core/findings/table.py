"""Every sentence that a check says, by the id of its finding; values fill it in and travel as evidence.

An id may have several sentences, `id/variant`; `protocol/language/filled.py` says how values stand
in them.
"""

from collections.abc import Mapping
from typing import Any

from engine_host.core.findings.deploy import DEPLOY
from engine_host.core.findings.hosts import HOSTS
from engine_host.core.findings.machine import MACHINE
from engine_host.core.findings.presets import PRESETS
from engine_host.core.findings.remote import REMOTE
from engine_host.core.findings.routes import ROUTES
from engine_host.core.findings.services import SERVICES
from engine_host.core.findings.starts import STARTS
from engine_host.core.findings.text import Text
from engine_host.protocol.base import Severity
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.language.filled import filled
from engine_host.protocol.launch.plans import Finding

TEXTS: Mapping[str, Text] = {
    **STARTS,
    **PRESETS,
    **DEPLOY,
    **ROUTES,
    **HOSTS,
    **REMOTE,
    **SERVICES,
    **MACHINE,
}


def finding(
    key: str,
    /,
    *,
    severity: Severity | None = None,
    reason: Reason | None = None,
    fix: Fix | None = None,
    command: str | None = None,
    settings: Mapping[str, Any] | None = None,
    evidence: Mapping[str, Any] | None = None,
    **values: Any,
) -> Finding:
    """Return the finding of a row of the table.

    What is given takes the place of the row's; a `fix` without text gets that of the row. `evidence` is what
    no sentence needs.
    """
    row = TEXTS[key]
    if fix is None and row.fix:
        if command is None and row.command is not None:
            command = filled(row.command, values)
        fix = Fix(text=_said(row.fix, values), command=command, settings=dict(settings or {}))
    elif fix is not None and not fix.text:
        fix = fix.model_copy(update={"text": _said(row.fix, values)})
    return Finding(
        id=key.partition("/")[0],
        severity=severity or row.severity,
        message=_said(row.message, values),
        reason=reason or row.reason,
        fix=fix,
        evidence={**(evidence or {}), **values},
    )


def _said(message: str, values: Mapping[str, Any]) -> str:
    filled(message, values)
    return tr(message, **values)
