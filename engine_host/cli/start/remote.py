"""Reach a host on another machine through the connection that this machine's host keeps to it."""

import re

from engine_host.client.address import RemoteAddress
from engine_host.client.sync import ControlClient
from engine_host.core.errors import HostError
from engine_host.core.paths import Folders
from engine_host.protocol.errors import Fix, Reason

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


def remote_client(name: str) -> ControlClient:
    """A client of the host on another machine.

    Raises HostError(not_found) for a name that none can have, HostError(host_unreachable) when no connection
    leads there, HostError(protocol_mismatch) when it is too old or too new.
    """
    if not _NAME.fullmatch(name):
        raise HostError(
            Reason.NOT_FOUND,
            f"There is no host {name[:80]!r}.",
            cause="The name of a host has small letters, digits and hyphens.",
            fix=Fix(text="See which there are.", command="sndr host list"),
        )
    folder = Folders.resolve().run / "hosts" / name
    client = ControlClient(RemoteAddress(name, folder / "control.sock", folder / "control.token"))
    client.connect()
    return client
