"""The state of a host in a word, with the tone that goes with it."""

from __future__ import annotations

from engine_host.protocol.language import tr
from engine_host.protocol.remote.hosts import RemoteHost, RemoteHostState
from sndr_gui.host.connection import Phase
from sndr_gui.host.session import Session

THIS_MACHINE = tr("This machine")
STATES = {
    RemoteHostState.DISCONNECTED: (tr("not connected"), "muted"),
    RemoteHostState.CONNECTING: (tr("connecting"), "accent"),
    RemoteHostState.ASKING: (tr("asks"), "warn"),
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
    Phase.CLOSING: (tr("closing"), "muted"),
}


def state_of(remote: RemoteHost, session: Session | None) -> tuple[str, str]:
    """Return the word and the tone of a host on another machine.

    Where ssh is connected it is the engine host over there that may be lost, or speak another protocol.
    """
    if remote.state is RemoteHostState.CONNECTED:
        if remote.engine_host_problem is not None:
            return tr("no engine host"), "warn"
        if session is not None and remote.control_socket is not None:
            return _PHASES[session.connection.phase]
    return STATES[remote.state]


def state_here(session: Session) -> tuple[str, str]:
    """Return the word and the tone of this machine's host."""
    return _PHASES[session.connection.phase]
