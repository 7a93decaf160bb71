"""Log lines of the host and of the engines."""

from pydantic import Field

from engine_host.protocol.base import Page, Query, Seconds, Severity, Wire


class LogLine(Wire):
    """One line; `source` is 'host', 'build' or an engine's id; numbers grow by one within a source."""

    source: str
    number: int
    at: Seconds
    severity: Severity
    text: str


class LogPage(Page):
    """Log lines, oldest first."""

    seq: int
    lines: tuple[LogLine, ...]
    sources: tuple[str, ...]


class LogQuery(Query):
    """The newest `limit` lines numbered above `after`, at least as severe, of one source or of all."""

    source: str | None = None
    severity: Severity = Severity.INFO
    after: int = Field(0, ge=-(1 << 62), le=1 << 62)
    limit: int = Field(1000, ge=-(1 << 31), le=1 << 31)
