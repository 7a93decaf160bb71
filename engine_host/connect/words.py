"""The words for a client's state and for the outcome of a step, in the window as on the command line."""

from engine_host.protocol.connect import ConnectionState, ProbeOutcome

STATES = {
    ConnectionState.CONNECTED: "set to this endpoint",
    ConnectionState.OUTDATED: "set to this endpoint, not to what runs now",
    ConnectionState.OTHER: "set to another address",
    ConnectionState.NOT_SET_UP: "not set up",
    ConnectionState.UNREADABLE: "its file cannot be read",
    ConnectionState.BY_HAND: "set by hand",
    ConnectionState.IMPOSSIBLE: "cannot reach this machine",
}
OUTCOMES = {
    ProbeOutcome.PASSED: "works",
    ProbeOutcome.FAILED: "fails",
    ProbeOutcome.UNCLEAR: "unclear",
    ProbeOutcome.SKIPPED: "skipped",
}
