"""The way to a host on another machine: the sockets that this machine's host forwards over its connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from engine_host.client import HostError
from engine_host.client.address import RemoteAddress
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr
from engine_host.protocol.remote.hosts import RemoteHost, RemoteHostState, RemoteMode
from sndr_gui.host.process import Address, HostStartFailed

# The connection is being made, or made again: it is waited for, and nothing has failed yet.
_ON_ITS_WAY = frozenset(
    {
        RemoteHostState.CONNECTING,
        RemoteHostState.ASKING,
        RemoteHostState.CONNECTED,
        RemoteHostState.RECONNECTING,
    }
)


class RemoteLink:
    """Finds the forwarded socket of another machine's host; starts and ends nothing there."""

    def __init__(self, name: str, known: Callable[[], RemoteHost | None]) -> None:
        """`known` is what this machine's host last said about it; None when it was removed."""
        self._name, self._known = name, known

    @property
    def owned(self) -> bool:
        """Tell that no host over there ends with this window."""
        return False

    async def find_or_start(self) -> Address:
        """Return where the host is reached.

        Raises HostStartFailed when it is not connected, HostError(host_unreachable) while it is being.
        """
        remote = self._known()
        if remote is None:
            raise HostStartFailed(
                tr("{name} is not among the hosts of this machine any more.", name=self._name)
            )
        if remote.control_socket is None or remote.control_token is None:
            if remote.state in _ON_ITS_WAY and remote.engine_host_problem is None:
                raise HostError(Reason.HOST_UNREACHABLE, self.story())
            raise HostStartFailed(self.story())
        try:
            token = await asyncio.to_thread(Path(remote.control_token).read_text, "utf-8")
        except (OSError, ValueError) as error:
            raise HostError(Reason.HOST_UNREACHABLE, self.story()) from error
        return Address(remote.control_socket, token.strip(), False)

    @property
    def address(self) -> RemoteAddress | None:
        """The address for a client of its own; None while the host is not reached."""
        remote = self._known()
        if remote is None or remote.control_socket is None or remote.control_token is None:
            return None
        return RemoteAddress(self._name, Path(remote.control_socket), Path(remote.control_token))

    def story(self) -> str:
        """Say how the connection is, in a sentence."""
        remote = self._known()
        if remote is None:
            return tr("{name} is not among the hosts of this machine any more.", name=self._name)
        if remote.state is RemoteHostState.CONNECTED and remote.engine_host_problem is not None:
            return f"{self._name}: {remote.engine_host_problem.sentence()}"
        if remote.state is RemoteHostState.CONNECTED and remote.mode is RemoteMode.AGENTLESS:
            return tr("{name} is used without an engine host: Hosts shows what is there.", name=self._name)
        if remote.problem is not None and remote.state not in _ON_ITS_WAY:
            return f"{self._name}: {remote.problem.sentence()}"
        if remote.state is RemoteHostState.CONNECTED:
            return tr("The engine host on {name} does not answer. Reconnecting…", name=self._name)
        return f"{self._name}: {remote.sentence}"

    async def ended(self, _patience: float) -> int | None:
        """Return None: a process of another machine is not known here."""
        return None

    def let_go(self) -> None:
        """Leave everything over there as it is."""

    async def finish(self, _asked: bool, _limit: float = 5.0) -> None:
        """Leave everything over there as it is."""
