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


def ended(sentence: str) -> str:
    """Return a sentence with its full stop; one that ends with a sign of its own stays as it is."""
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."


INFO, WARNING, ERROR = Severity.INFO, Severity.WARNING, Severity.ERROR
