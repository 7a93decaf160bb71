"""All remote hosts: those that are kept, the connection of each, and what can be done over it."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from engine_host.core.errors import HostError
from engine_host.core.paths import Folders
from engine_host.engines.process.reaper import Reaper
from engine_host.gateway.metrics.remote import RemoteFigures
from engine_host.protocol.endpoint.connect import EndpointModel
from engine_host.protocol.events import EventBase, RemoteHostEvent, SshQuestionEvent
from engine_host.protocol.remote.hosts import (
    AddRemoteHost,
    ChangeRemoteHost,
    RemoteFacts,
    RemoteHost,
    RemoteMode,
)
from engine_host.remote.book import HostBook, KeptHost
from engine_host.remote.engine_host_there import EngineHostLink, EngineHostThere, not_back
from engine_host.remote.facts.read import read_facts
from engine_host.remote.facts.series import MachineSeries
from engine_host.remote.figures import Figures
from engine_host.remote.lints import clock_off, of_clock
from engine_host.remote.run import Feed, RemoteOutcome, RemoteScript, Take, fed, run_over
from engine_host.remote.running_engines import RunningEngines, RunningModel
from engine_host.remote.ssh.command_lines import KEEP_ALIVE, OpenSsh
from engine_host.remote.ssh.connection import Connection
from engine_host.remote.ssh.failures import broke, not_connected
from engine_host.remote.ssh.folder import folder_of
from engine_host.remote.ssh.questions import QuestionDesk
from engine_host.remote.versions import standing
from engine_host.telemetry.history import History

_log = logging.getLogger(__name__)
_SSH_ITSELF = 255
"""The exit code of ssh for its own failures; a program there may have it too."""
_LOOK_NOW = 2.0
"""Seconds for which somebody waits who wants to see what runs there now."""
_LOOK_AGAIN = 7.0
"""Seconds for which somebody waits who asks anew whether an engine host runs there."""
_MOST = 4 << 20
"""Bytes that are kept of what a program there prints."""
_AGE_OF_FACTS = 300.0
"""Seconds after which the facts of a connected machine are read anew."""
_PAUSE_OF_SERIES = 60.0
"""Seconds until a machine is measured again whose program ended."""


@dataclass
class _Ending:
    """Those that end or replace one host's connection, one after the other; `connect` is for afterwards."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: int = 0
    connect: bool = False


class RemoteHosts:
    """The hosts by name; each has at most one connection."""

    def __init__(
        self,
        book: HostBook,
        folders: Folders,
        reaper: Reaper,
        publish: Callable[[EventBase], None],
        environment: Mapping[str, str],
        keep_alive: int = KEEP_ALIVE,
    ) -> None:
        """`environment` is what ssh gets; `keep_alive` are seconds of silence after which it asks."""
        self.book = book
        self._folders = folders
        self._reaper = reaper
        self._publish = publish
        self.ssh = OpenSsh(environment, keep_alive)
        self._connections: dict[str, Connection] = {}
        self._endings: dict[str, _Ending] = {}
        self._links: dict[str, EngineHostLink | RunningEngines] = {}
        self._running: dict[str, tuple[RunningModel, ...]] = {}
        self._there: dict[str, EngineHostThere] = {}
        self._histories: dict[str, History] = {}
        self._series: dict[str, MachineSeries] = {}
        self._figures: dict[str, Figures] = {}
        self._reading = asyncio.Lock()
        # What goes on beside each connection that stands, told the host's name.
        self.beside: list[Callable[[str], Awaitable[None]]] = []
        self.desk = QuestionDesk(
            folders.run / "askpass.sock",
            folders.data / "askpass",
            lambda question, is_open: publish(SshQuestionEvent(question=question, open=is_open)),
        )

    def all(self) -> list[RemoteHost]:
        """Return all hosts as they are now, by name."""
        return [self.shown(name) for name in sorted(self.book.all)]

    def figures(self) -> list[RemoteFigures]:
        """Return what connected hosts have told of their engines; nobody is asked for it."""
        found = []
        for name, connection in self._connections.items():
            if connection.connected:
                told, there = self._figures.get(name, Figures()), self._there.get(name, EngineHostThere())
                series = self._series.get(name)
                machine = series.latest if series is not None else None
                found.append(
                    RemoteFigures(name, told.rate_at, told.rate, there.engines, there.engines_at, machine)
                )
        return found

    def shown(self, name: str) -> RemoteHost:
        """Return a host as it is now. Raises HostError(not_found)."""
        kept = self.book.get(name)
        found = self._connections.get(name)
        shown = RemoteHost(**kept.model_dump())
        times = self.book.facts(name).read_at.values()
        shown = shown.model_copy(update={"facts_at": max(times, default=None)})
        figures = self._figures.get(name, Figures())
        shown = shown.model_copy(
            update={
                "tokens_per_second": figures.rate,
                "tokens_at": figures.rate_at,
                "last_event": figures.last,
                "last_event_at": figures.last_at,
            }
        )
        if found is None:
            return shown
        status, there = found.status, self._there.get(name, EngineHostThere())
        reachable, folder = there.reachable and found.connected, found.folder
        ahead = clock_off(there.clock_ahead if reachable else self.book.facts(name).clock_ahead)
        return shown.model_copy(
            update={
                "version": there.version,
                "protocol": there.protocol,
                "engine_host_problem": there.problem,
                "shell": tuple(self.ssh.shell(kept.destination, folder.ssh)) if found.connected else (),
                "models": there.models if reachable else self._agentless_models(name),
                "clock_ahead": ahead,
                "findings": (
                    *standing(name, there.version, there.protocol),
                    *not_back(name, there),
                    *of_clock(name, ahead),
                ),
                "control_socket": str(folder.control) if reachable else None,
                "control_token": str(folder.token) if reachable else None,
                "endpoint_socket": str(folder.endpoint) if reachable and there.endpoint else None,
                "state": status.state,
                "sentence": status.sentence,
                "problem": status.problem,
                "next_try_at": status.next_try_at,
                "connected_at": status.connected_at,
                "address": status.address,
            }
        )

    def add(self, asked: AddRemoteHost) -> RemoteHost:
        """Keep a host. Raises HostError(conflict), and what saving raises."""
        kept = self.book.add(asked)
        self._changed(kept.name)
        return self.shown(kept.name)

    async def change(self, name: str, asked: ChangeRemoteHost) -> RemoteHost:
        """Keep other facts of a host; one that leads elsewhere now is disconnected."""
        async with self._ending_of(name) as ending:
            old = self.book.get(name)
            kept = self.book.change(name, asked)
            found = self._connections.get(name)
            if found is not None:
                if (old.destination, old.mode) != (kept.destination, kept.mode):
                    if not ending.connect:
                        self.book.want(name, False)
                    await found.disconnect()
                    self._connections.pop(name, None)
                else:
                    found.host = kept
        self._changed(name)
        return self.shown(name)

    async def remove(self, name: str) -> None:
        """Disconnect and forget a host. Raises HostError(not_found), and what saving raises."""
        self._unwanted(name)
        async with self._ending_of(name):
            shown = self.shown(name)
            if found := self._connections.get(name):
                await found.disconnect()
            self.book.remove(name)
            self._connections.pop(name, None)
            self._histories.pop(name, None)
            self._figures.pop(name, None)
        self._publish(RemoteHostEvent(remote=shown, removed=True))

    def connect(self, name: str) -> RemoteHost:
        """Connect and stay connected, once what is being ended has ended.

        Raises HostError: not_found, ssh_missing.
        """
        kept = self.book.want(name, True)
        found = self._connections.get(name)
        if ending := self._endings.get(name):
            ending.connect = True
            if found is not None:
                found.connect_later()
            return self.shown(name)
        if found is None:
            self._reaper.remove_with_host(self.desk.socket)
            found = self._connections[name] = self._connection(kept)
        found.connect()
        return self.shown(name)

    async def disconnect(self, name: str) -> RemoteHost:
        """End the connection. Raises HostError(not_found)."""
        self._unwanted(name)
        async with self._ending_of(name):
            if found := self._connections.get(name):
                await found.disconnect()
        return self.shown(name)

    def _unwanted(self, name: str) -> None:
        self.book.want(name, False)
        if ending := self._endings.get(name):
            ending.connect = False

    @contextlib.asynccontextmanager
    async def _ending_of(self, name: str) -> AsyncIterator["_Ending"]:
        """Be the only one that ends or replaces a connection; who wants it meanwhile gets it afterwards."""
        ending = self._endings.setdefault(name, _Ending())
        ending.waiting += 1
        try:
            async with ending.lock:
                yield ending
        finally:
            ending.waiting -= 1
            if not ending.waiting:
                del self._endings[name]
                if ending.connect and name in self.book.all:
                    self._connect_again(name)

    def resume(self) -> None:
        """Connect what was connected when the last host ended; what ssh asks then waits for a person."""
        for name in [host.name for host in self.book.all.values() if host.wanted]:
            self._connect_again(name)

    def _connect_again(self, name: str) -> None:
        try:
            self.connect(name)
        except HostError as error:
            _log.warning("%s is not connected again: %s", name, error.problem.sentence())

    def there(self, name: str) -> EngineHostThere:
        """Return the engine host of a machine as far as it is known."""
        return self._there.get(name, EngineHostThere())

    def running(self, name: str) -> tuple[RunningModel, ...] | None:
        """Return the models of an agentless machine's engines; None where nobody has looked yet."""
        return self._running.get(name)

    def history(self, name: str) -> History:
        """Return what was measured on an agentless machine. Raises HostError(not_found)."""
        self.book.get(name)
        return self._histories.get(name, History())

    def agentless(self) -> list[str]:
        """Return the agentless machines whose engines can be asked."""
        return [name for name in self._running if self._connections[name].connected]

    def reachable(self) -> list[tuple[str, EngineHostThere, Connection]]:
        """Return the machines whose engine host answers, with the connection to each."""
        return [
            (name, there, self._connections[name])
            for name, there in self._there.items()
            if there.reachable and name in self._connections and self._connections[name].connected
        ]

    def connection(self, name: str) -> Connection:
        """Return the connection of a host that stands. Raises HostError: not_found, ssh_lost."""
        self.book.get(name)
        found = self._connections.get(name)
        if found is None or not found.connected:
            raise not_connected(name)
        return found

    async def run(
        self, name: str, script: RemoteScript, data: bytes = b"", *, seconds: float = 30.0, most: int = _MOST
    ) -> RemoteOutcome:
        """Run one of our programs there, with data on its standard input, and return its end.

        Raises HostError: not_found, ssh_lost where no connection stands or it went away meanwhile.
        """
        return await self.run_fed(name, script, fed(script.sent(data), held=script.held), seconds, most)

    async def run_fed(
        self,
        name: str,
        script: RemoteScript,
        feed: Feed,
        seconds: float | None,
        most: int = _MOST,
        take: Take | None = None,
    ) -> RemoteOutcome:
        """Run one of our programs there with `feed` writing its standard input, the program itself first.

        `take` gets what it prints. Raises HostError: not_found, ssh_lost, and what both raise.
        """
        connection = self.connection(name)
        argv = connection.command(script.interpreter.value)
        outcome = await run_over(argv, self.ssh.sharing_environment(), feed, seconds, most, take)
        # A negative one is a signal that ended ssh here, as where memory ran out: never of a program there.
        killed = outcome.exit is not None and outcome.exit < 0
        if killed or (outcome.exit == _SSH_ITSELF and not await connection.stands()):
            raise broke(name, killed=killed)
        if take is None:
            outcome.need_start(name, script)
        return outcome

    async def probe(self, name: str) -> RemoteFacts:
        """Read the facts of a connected host, keep them and tell of it.

        Raises HostError: not_found, ssh_lost, ssh_failed, and what saving raises.
        """
        kept = self.book.get(name)
        facts = await read_facts(
            lambda script, data, seconds: self.run(name, script, data, seconds=seconds),
            kept.model_root,
            self.book.facts(name),
        )
        if self.book.get(name).destination != kept.destination:
            # These are facts of where it led to before.
            raise not_connected(name)
        self.book.keep_facts(facts)
        self._changed(name)
        return facts

    def look(self, name: str) -> None:
        """Look for the engine host there at once: it was installed or started, or somebody needs it."""
        if name in self._links:
            self._links[name].look()
        elif name in self._connections:
            self._connections[name].hurry()

    async def look_now(self, name: str, seconds: float = _LOOK_NOW) -> None:
        """Ask what runs there now, and wait that long at most for it; nothing without a connection."""
        if name in self._links:
            await self._links[name].look_now(seconds)
        else:
            self.look(name)

    async def look_again(self, name: str) -> RemoteHost:
        """Return a host after a look for its engine host, where the connection stands.

        Raises HostError(not_found).
        """
        link = self._links.get(name)
        if isinstance(link, EngineHostLink) and not await link.look_now(_LOOK_AGAIN):
            # What was told before may be otherwise by now.
            self._there.pop(name, None)
        return self.shown(name)

    async def close(self) -> None:
        """End all connections."""
        await asyncio.gather(*(one.disconnect() for one in self._connections.values()))
        await self.desk.close()
        with contextlib.suppress(OSError):
            (self._folders.run / "hosts").rmdir()

    def _connection(self, kept: KeptHost) -> Connection:
        return Connection(
            kept,
            folder_of(self._folders.run, kept.name),
            self.ssh,
            self.desk,
            self._reaper,
            lambda: self._told(kept.name),
            self._session,
            stood_before=bool(self.book.facts(kept.name).read_at),
        )

    def _agentless_models(self, name: str) -> tuple[EndpointModel, ...]:
        return tuple(
            EndpointModel(id=one.id, context=one.context, chat=not one.embeddings)
            for one in self._running.get(name, ())
        )

    async def _session(self, connection: Connection) -> None:
        """Do what a connection is for, as long as it stands."""
        name = connection.host.name
        beside = [asyncio.ensure_future(one(name)) for one in self.beside]
        try:
            await self._look_after(connection)
        finally:
            for one in beside:
                one.cancel()
            await asyncio.gather(*beside, return_exceptions=True)

    async def _look_after(self, connection: Connection) -> None:
        name = connection.host.name
        if connection.host.mode is not RemoteMode.ENGINE_HOST:
            await self._look_at_engines(connection)
            return

        def changed(there: EngineHostThere) -> None:
            old, is_new = self._there.get(name, EngineHostThere()), name not in self._there
            self._there[name] = there
            if old != there or is_new:
                self._figures_of(name).measured(there.rate)
                self._figures_of(name).answers(_answering(old), _answering(there), told=there.reachable)
                self._changed(name)

        link = EngineHostLink(connection, lambda script: self.run(name, script), changed)
        self._links[name] = link
        reading = asyncio.create_task(self._read_now_and_then(connection), name=f"facts of {name}")
        try:
            await link.keep()
        finally:
            self._links.pop(name, None)
            self._there.pop(name, None)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _read_now_and_then(self, connection: Connection) -> None:
        """Read the facts when they are old, one machine at a time."""
        name = connection.host.name
        while True:
            age = time.time() - max(self.book.facts(name).read_at.values(), default=0.0)
            if not 0.0 <= age < _AGE_OF_FACTS:
                try:
                    async with self._reading:
                        await self.probe(name)
                except HostError as error:
                    _log.info("the facts of %s could not be read: %s", name, error.problem.message)
                except Exception:  # noqa: BLE001 - nobody would hear of it, and facts stay as old as they are
                    _log.exception("the facts of %s could not be read", name)
                # By no clock: where it was set back, a part that cannot be read any more stays of the future.
                age = 0.0
            await asyncio.sleep(_AGE_OF_FACTS - age)

    async def _look_at_engines(self, connection: Connection) -> None:
        name = connection.host.name

        def changed(models: tuple[RunningModel, ...], rate: float | None) -> None:
            old = self._running.get(name)
            another = self._figures_of(name).measured(rate)
            if old != models or another:
                self._figures_of(name).answers([one.id for one in old or ()], [one.id for one in models])
                self._running[name] = models
                self._changed(name)

        link = RunningEngines(connection, lambda: self.probe(name), changed)
        self._links[name] = link
        measured = MachineSeries(self._histories.setdefault(name, History()))
        self._series[name] = measured
        series = asyncio.create_task(self._follow(connection, measured), name=f"series of {name}")
        try:
            await link.keep()
        finally:
            self._links.pop(name, None)
            self._running.pop(name, None)
            self._series.pop(name, None)
            series.cancel()
            await asyncio.gather(series, return_exceptions=True)

    async def _follow(self, connection: Connection, series: MachineSeries) -> None:
        """Measure an agentless machine, again after a while where that ends."""
        name = connection.host.name
        while True:
            with contextlib.suppress(HostError):
                await series.follow(
                    lambda script, feed, take: self.run_fed(name, script, feed, None, take=take)
                )
            await asyncio.sleep(_PAUSE_OF_SERIES)

    def _figures_of(self, name: str) -> Figures:
        return self._figures.setdefault(name, Figures())

    def _told(self, name: str) -> None:
        if (found := self._connections.get(name)) is not None:
            self._figures_of(name).state(found.status.state)
        self._changed(name)

    def _changed(self, name: str) -> None:
        if name in self.book.all:
            self._publish(RemoteHostEvent(remote=self.shown(name)))


def _answering(there: EngineHostThere) -> list[str]:
    """Return the models that answer there, and not those that a request would load first."""
    return [one.id for one in there.models if not one.on_demand]
