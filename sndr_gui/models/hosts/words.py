"""The state of a host in a word, with the tone that goes with it."""

from __future__ import annotations

from engine_host.protocol.remote.hosts import RemoteHost, RemoteHostState
from sndr_gui.host.connection import Phase
from sndr_gui.host.session import Session

THIS_MACHINE = "This machine"
_STATES = {
    RemoteHostState.DISCONNECTED: ("not connected", "muted"),
    RemoteHostState.CONNECTING: ("connecting", "accent"),
    RemoteHostState.ASKING: ("asks", "warn"),
    RemoteHostState.CONNECTED: ("connected", "good"),
    RemoteHostState.RECONNECTING: ("reconnecting", "warn"),
    RemoteHostState.FAILED: ("failed", "bad"),
}
_PHASES = {
    Phase.STARTING: ("connecting", "accent"),
    Phase.CONNECTED: ("connected", "good"),
    Phase.RECONNECTING: ("reconnecting", "warn"),
    Phase.FAILED: ("failed", "bad"),
    Phase.MISMATCH: ("other version", "bad"),
    Phase.CLOSING: ("closing", "muted"),
}


def state_of(remote: RemoteHost, session: Session | None) -> tuple[str, str]:
    """Return the word and the tone of a host on another machine.

    Where ssh is connected it is the engine host over there that may be lost, or speak another protocol.
    """
    if remote.state is RemoteHostState.CONNECTED:
        if remote.engine_host_problem is not None:
            return "no engine host", "warn"
        if session is not None and remote.control_socket is not None:
            return _PHASES[session.connection.phase]
    return _STATES[remote.state]


def state_here(session: Session) -> tuple[str, str]:
    """Return the word and the tone of this machine's host."""
    return _PHASES[session.connection.phase]
