"""The state of a host in a word, with the tone that goes with it."""

from __future__ import annotations

from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr
from engine_host.protocol.remote.hosts import RemoteHost, RemoteHostState
from sndr_gui.host.connection import Phase
from sndr_gui.host.session import Session

THIS_MACHINE = tr("This machine")
STATES = {
    RemoteHostState.DISCONNECTED: (tr("not connected"), "muted"),
    RemoteHostState.CONNECTING: (tr("connecting"), "accent"),
    RemoteHostState.ASKING: (tr("waits for an answer"), "warn"),
    RemoteHostState.CONNECTED: (tr("connected"), "good"),
    RemoteHostState.RECONNECTING: (tr("reconnecting"), "warn"),
    RemoteHostState.FAILED: (tr("failed"), "bad"),
}
_PHASES = {
    Phase.STARTING: (tr("connecting"), "accent"),
    Phase.CONNECTED: (tr("connected"), "good"),
    Phase.RECONNECTING: (tr("reconnecting"), "warn"),
    Phase.FAILED: (tr("failed"), "bad"),
    Phase.MISMATCH: (tr("other version"), "bad"),
    Phase.ENDED: (tr("ended"), "muted"),
    Phase.CLOSING: (tr("closing"), "muted"),
}


def is_missing(remote: RemoteHost) -> bool:
    """Return True if no engine host of ours was found there: an install brings one."""
    return _helps(remote, "install")


def is_mendable(remote: RemoteHost) -> bool:
    """Return True if an engine host was installed there that an update starts again or makes newer."""
    return _helps(remote, "update")


def speaks_another_protocol(remote: RemoteHost) -> bool:
    """Return True if the engine host there is of a version that this one cannot talk to."""
    problem = remote.engine_host_problem
    return problem is not None and problem.reason is Reason.PROTOCOL_MISMATCH


def _helps(remote: RemoteHost, verb: str) -> bool:
    problem = remote.engine_host_problem
    fix = problem.fix if problem is not None else None
    return fix is not None and fix.command == f"sndr host {verb} {remote.name}"


def state_of(remote: RemoteHost, session: Session | None) -> tuple[str, str]:
    """Return the word and the tone of a host on another machine.

    Where ssh is connected it is the engine host over there that may be lost, or speak another protocol.
    """
    if remote.state is RemoteHostState.CONNECTED:
        if remote.engine_host_problem is not None:
            if speaks_another_protocol(remote):
                return _PHASES[Phase.MISMATCH]
            return (tr("no engine host") if is_missing(remote) else tr("host does not answer")), "warn"
        if session is not None and remote.control_socket is not None:
            return _PHASES[session.connection.phase]
    if remote.problem is not None and remote.problem.reason is Reason.HOST_KEY_CHANGED:
        return tr("host key changed"), "bad"
    return STATES[remote.state]


def state_here(session: Session) -> tuple[str, str]:
    """Return the word and the tone of this machine's host."""
    return _PHASES[session.connection.phase]
