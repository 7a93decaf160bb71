"""The words for a client's state and for the outcome of a step, in the window as on the command line."""

from engine_host.protocol.endpoint.connect import ConnectionState, ProbeOutcome, ProbeReport
from engine_host.protocol.language import tr

STATES = {
    ConnectionState.CONNECTED: tr("set to this endpoint"),
    ConnectionState.OUTDATED: tr("set to this endpoint, not to what runs now"),
    ConnectionState.OTHER: tr("set to another address"),
    ConnectionState.NOT_SET_UP: tr("not set up"),
    ConnectionState.UNREADABLE: tr("its file cannot be read"),
    ConnectionState.BY_HAND: tr("manual setup"),
    ConnectionState.IMPOSSIBLE: tr("cannot reach this machine"),
}
OUTCOMES = {
    ProbeOutcome.PASSED: tr("works"),
    ProbeOutcome.FAILED: tr("fails"),
    ProbeOutcome.UNCLEAR: tr("unclear"),
    ProbeOutcome.SKIPPED: tr("skipped"),
}


def outcome_of(report: ProbeReport) -> str:
    """Return the outcome of a whole probe as one sentence, which claims no more than was seen."""
    if not report.passed:
        return tr("Not all of it works.")
    if report.whole:
        return tr("All of it works.")
    doubts = [step.name for step in report.steps if step.outcome is not ProbeOutcome.PASSED]
    values = {"doubts": ", ".join(doubts)}
    if report.warnings:
        return (
            tr("Nothing failed. Unclear or not tried: {doubts}. Mind the warning above.", **values)
            if doubts
            else tr("Nothing failed. Mind the warning above.")
        )
    return (
        tr("Nothing failed. Unclear or not tried: {doubts}.", **values) if doubts else tr("Nothing failed.")
    )
