"""The view-model of Hosts: this machine and others at one glance; added, connected, removed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from PySide6.QtCore import Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.jobs import Job
from engine_host.protocol.language import tr
from engine_host.protocol.operations import remote_hosts as ops
from engine_host.protocol.operations.table import CANCEL_JOB
from engine_host.protocol.remote.hosts import AddRemoteHost, HostCandidate, RemoteFacts, RemoteHost
from sndr_gui.host.fleet import Fleet
from sndr_gui.host.session import Session
from sndr_gui.kit import formats
from sndr_gui.models.engine.last_ran import LastRan
from sndr_gui.models.hosts.cards import HostCard, card_here, card_of
from sndr_gui.models.hosts.installing import job_of
from sndr_gui.models.window.actions import Actions
from sndr_gui.models.window.live_model import LiveModel


class HostsModel(LiveModel):
    """The model of Hosts; it speaks with this machine's host, which keeps the connections.

    Signals:
        saved: a host that a dialog sent was taken
        refused: the Problem of what a dialog sent
        asked: a start on another machine waits for a person's answer; with its Actions
    """

    saved = Signal()
    refused = Signal(object)
    asked = Signal(object)

    def __init__(self, fleet: Fleet) -> None:
        super().__init__()
        self.fleet = fleet
        self.opened: str | None = None
        self.candidates: tuple[HostCandidate, ...] = ()
        self.source = ""
        self.facts: dict[str, RemoteFacts] = {}
        self._facts_at: dict[str, float | None] = {}
        self._pending: set[str] = set()
        self._shown = False
        fleet.changed.connect(self._on_fleet)
        fleet.forgotten.connect(self._on_forgotten)
        fleet.local.state.jobs_changed.connect(self.throttle.trigger)
        # The figures of hosts that nobody looks at elsewhere move on with their own events.
        self._dismissed: set[str] = set()
        self._watched: set[str] = set()
        self._last_ran: dict[str, tuple[Session, LastRan]] = {}

    @property
    def session(self) -> Session:
        """The session with this machine's host."""
        return self.fleet.local

    @property
    def connected(self) -> bool:
        """True while this machine's host answers."""
        return self.session.connection.connected

    @property
    def subtitle(self) -> str:
        """The line below the title."""
        names = self.fleet.names
        if not self.connected:
            return tr("no connection to this machine's engine host")
        if not names:
            return tr("only this machine")
        told = [one for one in map(self.fleet.remote, names) if one is not None]
        count = sum(one.connected_at is not None for one in told)
        return tr(
            "{other_machines}  ·  {count} connected",
            other_machines=formats.plural(len(names), "other machine"),
            count=count,
        )

    @property
    def cards(self) -> tuple[HostCard, ...]:
        """This machine and the others, by name."""
        fleet = self.fleet
        found = [card_here(fleet.local)]
        here = fleet.local.state.host
        program = here.program if here is not None else ""
        for name in fleet.names:
            if (remote := fleet.remote(name)) is not None:
                found.append(card_of(remote, fleet.known_session(name), self.facts.get(name), program))
        return tuple(found)

    def last_ran(self, name: str) -> LastRan | None:
        """Return what ran last on another machine; None while its engine host was never reached."""
        session = self.fleet.known_session(name)
        if session is None:
            return None
        known = self._last_ran.get(name)
        if known is None or known[0] is not session:
            actions = Actions(session)
            actions.changed.connect(self.changed)
            actions.asked.connect(self.asked)
            known = self._last_ran[name] = (session, LastRan(session, actions))
        return known[1]

    def _on_forgotten(self, name: str) -> None:
        self._last_ran.pop(name, None)

    def open(self, name: str | None) -> None:
        """Show everything of one host; None for all of them at one glance."""
        self.opened = name
        self.changed.emit()

    def pending(self, what: str) -> bool:
        """True while a command is on its way."""
        return what in self._pending

    def set_shown(self, shown: bool) -> None:
        """Read while somebody looks."""
        super().set_shown(shown)
        self._shown = shown
        if shown:
            self.read_candidates()
            self._on_fleet()

    def _on_fleet(self) -> None:
        for name in ("", *self.fleet.names):
            session = self.fleet.known_session(name)
            if session is not None and name not in self._watched:
                self._watched.add(name)
                session.state.engines_changed.connect(self.throttle.trigger)
                session.state.host_changed.connect(self.throttle.trigger)
        self._watched &= {"", *self.fleet.names}
        if self._shown:
            for name in self.fleet.names:
                remote = self.fleet.remote(name)
                if remote is not None and remote.facts_at != self._facts_at.get(name):
                    self._facts_at[name] = remote.facts_at
                    self.read_facts(name)
        self.throttle.trigger()

    def read_candidates(self) -> None:
        """Read which hosts the ssh configuration names."""
        if not self.connected:
            return

        async def work(client: AsyncControlClient) -> None:
            page = await client.call(ops.HOST_CANDIDATES)
            self.candidates = tuple(one for one in page.candidates if one.kept_as is None)
            self.source = page.source

        self._send("candidates", work, self._ignore)

    def read_facts(self, name: str) -> None:
        """Read what was last found out about a host."""

        async def work(client: AsyncControlClient) -> None:
            self.facts[name] = await client.call(ops.HOST_FACTS, name=name)

        self._send(f"facts {name}", work, self._ignore)

    def add(self, asked: AddRemoteHost) -> None:
        """Keep a host; `saved` or `refused` follows."""

        async def work(client: AsyncControlClient) -> None:
            await self.session.state.take(client.call(ops.ADD_HOST, asked))
            self.saved.emit()

        self._send("add", work, self._refuse)

    def connect_host(self, name: str) -> None:
        """Connect a host and keep it connected; questions of ssh follow as events."""
        self.fleet.connect_host(name)

    def disconnect_host(self, name: str) -> None:
        """End a connection; what runs over there goes on."""

        async def work(client: AsyncControlClient) -> None:
            await self.session.state.take(client.call(ops.DISCONNECT_HOST, name=name))

        self._send(f"disconnect {name}", work)

    def probe(self, name: str) -> None:
        """Read the facts of a connected host anew."""

        async def work(client: AsyncControlClient) -> None:
            self.facts[name] = await client.call(ops.PROBE_HOST, name=name)

        self._send(f"probe {name}", work)

    def remove(self, name: str) -> None:
        """Forget a host, with undo."""
        remote = self.fleet.remote(name)

        async def work(client: AsyncControlClient) -> None:
            await client.call(ops.REMOVE_HOST, name=name)
            if remote is not None:
                self.session.state.set_remote_host(remote, removed=True)
                self.session.notices.info(
                    "host removed",
                    tr("{name} is removed. Nothing changed on that machine.", name=name),
                    action_text=tr("Undo"),
                    action=partial(self._keep_again, remote),
                )

        self._send(f"remove {name}", work)

    def _keep_again(self, remote: RemoteHost) -> None:
        asked = AddRemoteHost(**{fact: getattr(remote, fact) for fact in AddRemoteHost.model_fields})

        async def work(client: AsyncControlClient) -> None:
            await self.session.state.take(client.call(ops.ADD_HOST, asked))

        self._send(f"undo removal of {remote.name}", work)

    def job(self, name: str) -> Job | None:
        """Return the newest job on another machine; None for one that was put away."""
        job = job_of(self.session, name)
        return None if job is None or job.id in self._dismissed else job

    def cancel(self, job_id: str) -> None:
        """Cancel such a job; put one away that has ended."""
        job = self.session.state.jobs.get(job_id)
        if job is not None and job.ended:
            self._dismissed.add(job_id)
            self.changed.emit()
            return

        async def work(client: AsyncControlClient) -> None:
            await self.session.state.take(client.call(CANCEL_JOB, id=job_id))

        self._send(f"cancel {job_id}", work)

    def _send(
        self,
        what: str,
        work: Callable[[AsyncControlClient], Awaitable[None]],
        failed: Callable[[HostError], object] | None = None,
    ) -> None:
        if what in self._pending:
            return
        self._pending.add(what)

        def done() -> None:
            self._pending.discard(what)
            self.changed.emit()

        self.session.command(what, work, done=done, failed=failed)
        self.changed.emit()

    def _refuse(self, error: HostError) -> None:
        self.refused.emit(error.problem)

    def _ignore(self, _error: HostError) -> None:
        """The page shows what was read before; a connection that is lost says so itself."""
