"""The words for a client's state and for the outcome of a step, in the window as on the command line."""

from engine_host.protocol.endpoint.connect import ConnectionState, ProbeOutcome, ProbeReport

STATES = {
    ConnectionState.CONNECTED: "set to this endpoint",
    ConnectionState.OUTDATED: "set to this endpoint, not to what runs now",
    ConnectionState.OTHER: "set to another address",
    ConnectionState.NOT_SET_UP: "not set up",
    ConnectionState.UNREADABLE: "its file cannot be read",
    ConnectionState.BY_HAND: "for you to copy in",
    ConnectionState.IMPOSSIBLE: "out of reach",
}
OUTCOMES = {
    ProbeOutcome.PASSED: "works",
    ProbeOutcome.FAILED: "fails",
    ProbeOutcome.UNCLEAR: "unclear",
    ProbeOutcome.SKIPPED: "skipped",
}


def outcome_of(report: ProbeReport) -> str:
    """Return the outcome of a whole probe as one sentence, which claims no more than was seen."""
    if not report.passed:
        return "Not all of it works."
    if report.whole:
        return "All of it works."
    doubts = [step.name for step in report.steps if step.outcome is not ProbeOutcome.PASSED]
    left = f" Unclear or not tried: {', '.join(doubts)}." if doubts else ""
    return "Nothing failed." + left + (" Mind the warning above." if report.warnings else "")
