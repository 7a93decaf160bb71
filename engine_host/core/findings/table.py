"""Every sentence that a check says, by the id of its finding; values fill it in and travel as evidence.

An id may have several sentences, `id/variant`. A part in brackets is left out where one of its values is
missing; `{bytes:gib}` and `{bytes:mib}` are sizes without their unit, lists are joined by commas.
"""

import re
import string
from collections.abc import Mapping, Sequence
from typing import Any

from engine_host.core.findings.deploy import DEPLOY
from engine_host.core.findings.hosts import HOSTS
from engine_host.core.findings.presets import PRESETS
from engine_host.core.findings.remote import REMOTE
from engine_host.core.findings.routes import ROUTES
from engine_host.core.findings.services import SERVICES
from engine_host.core.findings.starts import STARTS
from engine_host.core.findings.text import Text, ended
from engine_host.protocol.base import Severity
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.launch.plans import Finding

TEXTS: Mapping[str, Text] = {**STARTS, **PRESETS, **DEPLOY, **ROUTES, **HOSTS, **REMOTE, **SERVICES}


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
        fix = Fix(text=filled(row.fix, values), command=command, settings=dict(settings or {}))
    elif fix is not None and not fix.text:
        fix = fix.model_copy(update={"text": filled(row.fix, values)})
    return Finding(
        id=key.partition("/")[0],
        severity=severity or row.severity,
        message=filled(row.message, values).strip(),
        reason=reason or row.reason,
        fix=fix,
        evidence={**(evidence or {}), **values},
    )


class _Formatter(string.Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec in _UNITS:
            return f"{value / _UNITS[format_spec]:.{1 if format_spec == 'gib' else 0}f}"
        if isinstance(value, Sequence) and not isinstance(value, str):
            return ", ".join(map(str, value))
        return str(super().format_field(value, format_spec))


_UNITS = {"gib": 2**30, "mib": 2**20}
_FORMATTER = _Formatter()
_ENDING = re.compile(r"(\{(\w+)\})\.(?=\s|$)")
_OPTIONAL = re.compile(r"\[(.*?)\]")


def _is_sentence(value: object) -> bool:
    return isinstance(value, str) and bool(value) and ended(value) == value


def filled(template: str, values: Mapping[str, Any]) -> str:
    """Return a sentence of the table with its values. Raises KeyError where one is missing."""

    def part(found: re.Match[str]) -> str:
        names = [name for _, name, _, _ in _FORMATTER.parse(found[1]) if name]
        return found[1] if all(values[name] not in (None, "") for name in names) else ""

    # Words of another program may be a sentence already.
    template = _ENDING.sub(
        lambda found: found[1] if _is_sentence(values.get(found[2])) else found[0], template
    )
    return _FORMATTER.vformat(_OPTIONAL.sub(part, template), (), values)
