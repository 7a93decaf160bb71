"""The hosts of the window: this machine's, which is always there, and those on other machines."""

from __future__ import annotations

import asyncio
from functools import partial

from PySide6.QtCore import QObject, Signal

from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.operations.remote_hosts import CONNECT_HOST
from engine_host.protocol.remote.hosts import RemoteHost, RemoteHostState
from sndr_gui.host.connection import HostConnection
from sndr_gui.host.link import RemoteLink
from sndr_gui.host.notices import relayed
from sndr_gui.host.session import Session
from sndr_gui.host.state import HostState

_IDLE = frozenset({RemoteHostState.DISCONNECTED, RemoteHostState.FAILED})


class Fleet(QObject):
    """Holds a session with each host, and which of them the pages are about.

    This machine has the empty name. A connected host has a session from then on, so that its figures are
    there before somebody looks; what one host says never reaches the state of another.

    Signals:
        changed: the hosts are others, or the connection of one changed
        chosen_changed: the pages are about another host
        forgotten: the name of a host that was removed
    """

    changed = Signal()
    chosen_changed = Signal()
    forgotten = Signal(str)

    def __init__(self, local: Session) -> None:
        super().__init__()
        self.local = local
        self.chosen = ""
        self._sessions: dict[str, Session] = {}
        # Goodbyes to hosts that were removed: each is said to its end, or sockets would stay open.
        self._leaving: set[asyncio.Task[None]] = set()
        local.state.remote_hosts_changed.connect(self._on_hosts)
        local.connection.changed.connect(self.changed)

    @property
    def names(self) -> tuple[str, ...]:
        """The hosts on other machines, by name."""
        return tuple(sorted(self.local.state.remote_hosts))

    @property
    def session(self) -> Session:
        """The session that the pages are about."""
        return self.session_with(self.chosen)

    def remote(self, name: str) -> RemoteHost | None:
        """Return what this machine's host last said about another one."""
        return self.local.state.remote_hosts.get(name)

    def known_session(self, name: str) -> Session | None:
        """Return the session with a host, where there is one already."""
        return self._sessions.get(name) if name else self.local

    def session_with(self, name: str) -> Session:
        """Return the session with a host; the first call for another machine's begins it."""
        if not name:
            return self.local
        if name not in self._sessions:
            state = HostState()
            connection = HostConnection(state, RemoteLink(name, partial(self.remote, name)), name)
            notices = relayed(self.local.notices, name)
            tasks = self.local.tasks.apart()
            self._sessions[name] = Session(state, connection, tasks, notices, name)
            tasks.start(connection.run(), f"connection to {name}")
            connection.changed.connect(self.changed)
        return self._sessions[name]

    def choose(self, name: str) -> None:
        """Let the pages be about a host; one that is not connected is connected."""
        if name and name not in self.local.state.remote_hosts:
            return
        remote = self.remote(name)
        if remote is not None and remote.state in _IDLE:
            self.connect_host(name)
        if name == self.chosen:
            return
        self.session_with(name)
        self.chosen = name
        self.chosen_changed.emit()

    def connect_host(self, name: str) -> None:
        """Have this machine's host connect another one; its state follows as events."""

        async def work(client: AsyncControlClient) -> None:
            await self.local.state.take(client.call(CONNECT_HOST, name=name))

        self.local.command(f"connect {name}", work)

    def _on_hosts(self) -> None:
        hosts = self.local.state.remote_hosts
        for name in [name for name in self._sessions if name not in hosts]:
            self._forget(name)
        for name, remote in hosts.items():
            if remote.control_socket is not None:
                self.session_with(name)
            if (session := self._sessions.get(name)) is not None and not session.connection.connected:
                session.connection.retry()
        self.changed.emit()

    def _forget(self, name: str) -> None:
        if self.chosen == name:
            self.chosen = ""
            self.chosen_changed.emit()
        session = self._sessions.pop(name)
        self.forgotten.emit(name)
        task = asyncio.get_event_loop().create_task(_end(session), name=f"forget {name}")
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def close(self) -> None:
        """Say goodbye to the hosts on other machines; what runs there goes on."""
        sessions, self._sessions = self._sessions, {}
        await asyncio.gather(*self._leaving, *map(_end, sessions.values()))


async def _end(session: Session) -> None:
    # What is under way ends before its connection does: a request that is cut off leaves its socket open.
    await session.tasks.close()
    await session.connection.close()
