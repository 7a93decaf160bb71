"""The view-model of Connect: clients of this machine, what each has to be told, what is done to its files.

Files are read and written in a thread and not by the host: they are those of the person at the window.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.connect.facts import ANY_KEY, Facts, address, facts_of, key_from
from engine_host.connect.words import STATES
from engine_host.protocol.endpoint.connect import (
    ClientChange,
    ClientEntry,
    ClientSettings,
    ConnectionState,
    EndpointModelPage,
    ProbeStep,
)
from engine_host.protocol.errors import Problem
from engine_host.protocol.host import Endpoint
from engine_host.protocol.language import tr
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import table as ops
from sndr_gui.host.session import Session
from sndr_gui.kit.rows import Column, RowsModel
from sndr_gui.models.connect.probe import Probe

if TYPE_CHECKING:
    from sndr_gui.models.connect.files import Files

T = TypeVar("T")
TONES = {
    ConnectionState.CONNECTED: "good",
    ConnectionState.OUTDATED: "warn",
    ConnectionState.UNREADABLE: "bad",
    ConnectionState.OTHER: "warn",
}


def columns() -> list[Column[ClientEntry]]:
    """Return the columns of the list of clients."""
    return [
        Column(tr("Client"), lambda entry: entry.title),
        Column(
            tr("Settings"),
            lambda entry: STATES[entry.state],
            None,
            lambda entry: TONES.get(entry.state, "muted"),
            tip=lambda entry: "\n".join(filter(None, (STATES[entry.state], entry.address, *entry.files))),
        ),
        Column(
            tr("Installed"),
            lambda entry: tr("found") if entry.found else "",
            lambda entry: not entry.found,
            lambda entry: "muted",
            tip=lambda entry: "\n".join(entry.found),
        ),
    ]


class ConnectModel(QObject):
    """The model of Connect.

    Signals:
        changed: clients, settings or what goes on is new
        proposed: a change to look at, and to write or not
    """

    changed = Signal()
    proposed = Signal(object)

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.rows = RowsModel(columns(), lambda entry: entry.name, self)
        self.chosen = ""
        self.url: str | None = None
        self.facts: Facts | None = None
        self.missing: Problem | None = None
        self.problems: dict[str, Problem] = {}
        self.done: ClientChange | None = None
        self.undone = False
        self.steps: tuple[ProbeStep, ...] = ()
        self.probed = ""
        self.working = ""
        self._settings: dict[str, ClientSettings] = {}
        self._impossible: dict[str, str] = {}
        self._files: Files | None = None
        self._models: tuple[str, ...] = ()
        self._model: str | None = None
        self._probe: Probe | None = None
        self._shown = self._reading = self._again = False
        self._running: tuple[object, ...] = ()
        session.state.engines_changed.connect(self._on_host)
        session.state.on_demand_changed.connect(self._on_host)
        session.connection.changed.connect(self._on_host)

    # What is read.

    def set_shown(self, shown: bool) -> None:
        """Read when somebody looks."""
        self._shown = shown
        if shown:
            self.load()

    def _on_host(self) -> None:
        """Read again when other models run, and not with every measurement of those that do."""
        engines = self.session.state.engines.values()
        running = (
            self.session.connection.connected,
            *((one.id, one.state, one.context) for one in engines),
            *((one.name, one.state) for one in self.session.state.on_demand.values()),
        )
        if running != self._running:
            self._running = running
            if self._shown:
                self.load()

    def load(self) -> None:
        """Ask the host for the facts, and read this machine's files."""
        if self._reading:
            self._again = True
            return
        self._reading, self._again = True, False
        self.session.tasks.start(self._load(), "connect")

    async def _load(self) -> None:
        try:
            await self._ask()
            url, facts = self.url, self.facts
            read = await self._in_thread(lambda files: files.read(url, facts))
            self._settings, self._impossible = read.settings, read.impossible
            self.rows.set_rows(read.clients)
            if not self.chosen and read.clients:
                self.chosen = read.clients[0].name
        finally:
            self._reading = False
        self.changed.emit()
        if self._again:
            self.load()

    async def _ask(self) -> None:
        # What is known stays until more is: a click meanwhile means what is shown.
        url: str | None = None
        facts: Facts | None = None
        missing: Problem | None = None
        try:
            client = self.session.client
            endpoint: Endpoint = (await client.call(ops.HOST)).endpoint
            page: EndpointModelPage = await client.call(endpoint_ops.ENDPOINT_MODELS)
            url = address(endpoint)
            self._models = tuple(model.id for model in page.models)
            if self._model not in self._models:
                self._model = None
            facts = facts_of(endpoint, page, self._model)
        except HostError as error:
            missing = error.problem
        self.url, self.facts, self.missing = url, facts, missing

    @property
    def models(self) -> tuple[str, ...]:
        """The models that can be told to a client."""
        return self._models

    def choose_model(self, name: str) -> None:
        """Tell clients of this model."""
        if name != self._model:
            self._model = name
            self.load()

    def choose(self, name: str) -> None:
        """Show a client."""
        if name != self.chosen:
            self.chosen = name
            self.changed.emit()

    @property
    def entry(self) -> ClientEntry | None:
        """The client that is shown."""
        place = self.rows.place_of(self.chosen)
        return self.rows.row_at(place) if place is not None else None

    @property
    def settings(self) -> ClientSettings | None:
        """The settings of the client that is shown."""
        return self._settings.get(self.chosen)

    @property
    def impossible(self) -> str:
        """The reason for which the client that is shown cannot be used; empty where it can."""
        return self._impossible.get(self.chosen, "")

    def command(self, *options: str) -> str:
        """Return the command that does the same."""
        chosen = ["--model", self._model] if self._model else []
        return shlex.join(["sndr", "connect", self.chosen, *options, *chosen])

    # What is done.

    def propose(self) -> None:
        """Work out what writing would change; `proposed` shows it."""
        facts, name = self.facts, self.chosen
        if facts is None:
            return

        def done(change: ClientChange | None) -> None:
            if change is not None and change.files:
                self.proposed.emit(change)
            else:
                self.done = change

        self._do("reading", lambda files: files.propose(name, facts), done)

    def write(self) -> None:
        """Write what was proposed and looked at."""
        self._do("writing", lambda files: files.write(), self._on_done)

    @property
    def undoing_loses(self) -> bool:
        """True once it has been shown what undoing would take from the client's files."""
        problem = self.problems.get(self.chosen)
        return problem is not None and bool(problem.evidence.get("difference"))

    def undo(self) -> None:
        """Put back what was there before; what was changed since, once that has been shown."""
        name, anyway = self.chosen, self.undoing_loses
        self._do("undoing", lambda files: files.undo(name, anyway=anyway), self._on_done)

    def _on_done(self, change: ClientChange | None) -> None:
        self.done = change

    def _do(
        self,
        what: str,
        work: Callable[[Files], ClientChange | None],
        then: Callable[[ClientChange | None], None],
    ) -> None:
        if self.working:
            return
        name = self.chosen
        self.working, self.done, self.undone = what, None, what == "undoing"
        self.problems.pop(name, None)
        self.changed.emit()

        async def whole() -> None:
            try:
                then(await self._in_thread(work))
            except HostError as error:
                self.problems[name] = error.problem
            finally:
                self.working = ""
            self.changed.emit()
            self.load()

        self.session.tasks.start(whole(), f"connect {what}")

    async def _in_thread(self, work: Callable[[Files], T]) -> T:
        def run() -> T:
            from sndr_gui.models.connect.files import Files

            self._files = self._files or Files()
            return work(self._files)

        return await asyncio.to_thread(run)

    # The probe.

    def probe(self) -> None:
        """Try the endpoint as the client that is shown does; `steps` grows."""
        facts = self.facts
        if facts is None or self.working:
            return
        self.working, self.probed, self.steps = "probing", self.chosen, ()
        self.problems.pop(self.chosen, None)
        self.changed.emit()
        self.session.tasks.start(self._probe_whole(self.chosen, facts), "connect probe")

    async def _probe_whole(self, name: str, facts: Facts) -> None:
        try:
            control = self.session.client
            client = await self._in_thread(lambda files: files.client(name))
            self._probe = Probe(control, self._on_step)
            await self._probe.run(client, facts, await self._key(control, facts))
        except HostError as error:
            self.problems[name] = error.problem
        finally:
            self.working, self._probe = "", None
        self.changed.emit()

    async def _key(self, control: AsyncControlClient, facts: Facts) -> str:
        """The key that a client would have, or one of the host's own."""
        if found := key_from(os.environ):
            return found
        own = (await control.call(endpoint_ops.OWN_KEY)).key if facts.key_needed else None
        return own or ANY_KEY

    def _on_step(self, step: ProbeStep) -> None:
        self.steps = (*self.steps, step)
        self.changed.emit()
