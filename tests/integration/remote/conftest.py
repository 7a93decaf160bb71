"""Machines to connect to, and the hosts of one run of ours that knows them."""

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine_host.core.paths import Folders
from engine_host.core.store import Store
from engine_host.engines.process.reaper import Reaper
from engine_host.engines.process.reaper_main import OWNER_VARIABLE
from engine_host.protocol.events import EventBase, RemoteHostEvent
from engine_host.protocol.remote.hosts import (
    AddRemoteHost,
    AnswerSshQuestion,
    RemoteHost,
    RemoteHostState,
    RemoteMode,
    SshQuestion,
)
from engine_host.remote.book import HostBook
from engine_host.remote.hosts import RemoteHosts
from tests.integration.remote.machines import Machines, running_machines
from tests.unit.asynchronous import until


@pytest.fixture
def machines() -> Iterator[Machines]:
    """A target and a jump host."""
    with running_machines() as found:
        yield found


@dataclass
class Fleet:
    """The remote hosts of one run, and what was told of them."""

    hosts: RemoteHosts
    events: list[EventBase] = field(default_factory=list)

    def add(
        self, name: str, destination: str, mode: RemoteMode = RemoteMode.AGENTLESS, **more: str
    ) -> RemoteHost:
        """Keep a host."""
        return self.hosts.add(AddRemoteHost(name=name, destination=destination, mode=mode, **more))

    async def reach(
        self, name: str, state: RemoteHostState = RemoteHostState.CONNECTED, seconds: float = 60.0
    ) -> RemoteHost:
        """Wait until a host has come into a state."""
        await until(lambda: self.hosts.shown(name).state is state, seconds)
        return self.hosts.shown(name)

    async def question(self) -> SshQuestion:
        """Wait for the next question of ssh."""
        await until(lambda: self.hosts.desk.waiting)
        return self.hosts.desk.waiting[0]

    async def answer(self, question: SshQuestion, text: str = "", *, accept: bool = True) -> None:
        """Answer it, and wait until it is taken."""
        self.hosts.desk.answer(question.id, AnswerSshQuestion(accept=accept, answer=text))
        await until(lambda: question not in self.hosts.desk.waiting)

    def states(self, name: str) -> list[RemoteHostState]:
        """The states of a host in the order in which they were told, each once in a row."""
        told = [
            event.remote.state
            for event in self.events
            if isinstance(event, RemoteHostEvent) and event.remote.name == name
        ]
        return [state for number, state in enumerate(told) if not number or told[number - 1] is not state]


@asynccontextmanager
async def _fleet(home: Path, machines: Machines, keep_alive: int) -> AsyncIterator[Fleet]:
    folders = Folders.resolve({"SNDR_HOME": str(home)})
    umask = os.umask(0o077)
    folders.make_run_folder()
    store = Store(folders.store)
    reaper = Reaper("remote-test")
    events: list[EventBase] = []
    environment = {**machines.environment(), OWNER_VARIABLE: "remote-test"}
    hosts = RemoteHosts(HostBook(store), folders, reaper, events.append, environment, keep_alive)
    try:
        yield Fleet(hosts, events)
    finally:
        await hosts.close()
        reaper.close()
        store.close()
        os.umask(umask)


@pytest.fixture
def fleet(home: Path, machines: Machines) -> Callable[..., AbstractAsyncContextManager[Fleet]]:
    """Open the hosts of a run; `keep_alive` in seconds."""

    def opened(keep_alive: int = 1) -> AbstractAsyncContextManager[Fleet]:
        return _fleet(home, machines, keep_alive)

    return opened
