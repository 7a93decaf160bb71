"""Reach a host on another machine through the connection that this machine's host keeps to it."""

import time
from pathlib import Path

from engine_host.cli.output import output_here
from engine_host.cli.remote.connecting import connect
from engine_host.cli.text.waiting import NOTHING_DONE, told_if_interrupted, told_when_long
from engine_host.client.address import RemoteAddress
from engine_host.client.sync import ControlClient, connected
from engine_host.core.errors import HostError
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.operations import remote_hosts as ops
from engine_host.protocol.remote.hosts import HOST_NAME, RemoteHost, RemoteHostState, RemoteMode

_FOUND = 20.0
_FOUND_STANDING = 3.0
"""Seconds for one that was looked for over a connection that stood already."""
_TRIED = 10.0
"""Seconds for a connection that was lost; it goes on being tried."""
_LOOK = 0.1


def remote_client(name: str) -> ControlClient:
    """A client of the host on another machine; it is connected first, and what ssh asks is asked here.

    Raises HostError(not_found) for one that was not added, HostError(host_unreachable) when no host runs here
    to keep the connection or none over there, HostError(protocol_mismatch) when it is too old or too new, and
    the reason of ssh when it is not connected.
    """
    if not HOST_NAME.fullmatch(name):
        raise HostError(
            Reason.NOT_FOUND,
            tr("There is no host {name}.", name=repr(name[:80])),
            cause="The name of a host has small letters, digits and hyphens.",
            fix=Fix(text="See which there are.", command="sndr host list"),
        )
    with _here(name) as here:
        here.waiting = lambda _asked: told_when_long(_waiting(name))
        remote = _with_engine_host(here, name)
    assert remote.control_socket is not None
    assert remote.control_token is not None
    client = ControlClient(RemoteAddress(name, Path(remote.control_socket), Path(remote.control_token)))
    client.waiting = lambda _asked: told_when_long(_waiting(name))
    client.connect()
    return client


def _waiting(name: str) -> str:
    return f"Waiting for the engine host on {name} …"


def _here(name: str) -> ControlClient:
    try:
        return connected()
    except HostError as error:
        if error.reason is not Reason.HOST_UNREACHABLE:
            raise
        raise HostError(
            Reason.HOST_UNREACHABLE,
            tr(
                "{name} is not connected: no engine host runs here that would keep the connection.", name=name
            ),
            fix=Fix(text="Connect it; that starts one.", command=f"sndr host connect {name}"),
            evidence={"host": name},
        ) from error


def _with_engine_host(here: ControlClient, name: str) -> RemoteHost:
    remote = here.call(ops.REMOTE_HOST, name=name)
    if remote.mode is RemoteMode.AGENTLESS:
        raise _without(name)
    stood = remote.state is RemoteHostState.CONNECTED
    if not stood or remote.control_socket is None:
        # Of one that stands it is looked again what runs there: what was told before may be otherwise by now.
        connect(here, name, output_here(), lost=_TRIED)
    return until_engine_host(here, name, _FOUND_STANDING if stood else _FOUND)


@told_if_interrupted(NOTHING_DONE)
def until_engine_host(here: ControlClient, name: str, seconds: float = _FOUND) -> RemoteHost:
    """Wait until the engine host of a connected machine can be asked. Raises HostError that says why not."""
    remote = here.call(ops.REMOTE_HOST, name=name)
    if remote.mode is RemoteMode.AGENTLESS:
        raise _without(name)
    began = time.monotonic()
    while remote.control_socket is None or remote.control_token is None:
        if remote.engine_host_problem is not None:
            raise HostError.from_problem(remote.engine_host_problem)
        if remote.state is not RemoteHostState.CONNECTED and remote.problem is not None:
            raise HostError.from_problem(remote.problem)
        if time.monotonic() > began + seconds:
            raise HostError(
                Reason.HOST_UNREACHABLE,
                tr(
                    "{name} is connected, and its engine host was not found within {found:.0f} s.",
                    name=name,
                    found=time.monotonic() - began,
                ),
                cause="The machine or the network hangs, or the engine host there is still starting.",
                fix=Fix(
                    text="Look again; a connection that broke is told and made anew.",
                    command=f"sndr host connect {name}",
                ),
                evidence={"host": name},
            )
        time.sleep(_LOOK)
        remote = here.call(ops.REMOTE_HOST, name=name)
    return remote


def _without(name: str) -> HostError:
    return HostError(
        Reason.UNSUPPORTED,
        tr("{name} is used without an engine host, which the command would ask.", name=name),
        fix=Fix(text="Let our engine host work there.", command=f"sndr host change {name} --engine-host"),
        evidence={"host": name},
    )
