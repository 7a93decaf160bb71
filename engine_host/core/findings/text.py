"""One row of the table of what checks say."""

from dataclasses import dataclass

from engine_host.protocol.base import Severity
from engine_host.protocol.errors import Reason


@dataclass(frozen=True, slots=True)
class Text:
    """A row: how grave it is, what it says, and what to do."""

    severity: Severity
    message: str
    reason: Reason | None = None
    fix: str = ""
    command: str | None = None


INFO, WARNING, ERROR = Severity.INFO, Severity.WARNING, Severity.ERROR
