"""The view-model of Routes: public model ids and what they stand for, changed and moved."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.endpoint.routes import (
    Route,
    RoutePage,
    RouteStatus,
    RouteTargets,
    SetRoute,
    TargetState,
)
from engine_host.protocol.errors import Problem
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.language import ntr, tr
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import table as ops
from sndr_gui.host.session import Session
from sndr_gui.models.routes.words import STATES


class RoutesModel(QObject):
    """The model of Routes.

    Signals:
        changed: the routes, their states or a problem are new
        saved: what a dialog sent was taken
        refused: the Problem of what a dialog sent
        revealed: a route is to be shown, the one in `wanted`
    """

    changed = Signal()
    saved = Signal()
    refused = Signal(object)
    revealed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.page: RoutePage | None = None
        self.problem: Problem | None = None
        self._pending: set[str] = set()
        self.wanted = ""
        self._shown = False
        session.state.outdated.connect(self._on_outdated)
        session.state.engines_changed.connect(self.read)
        session.state.jobs_changed.connect(self.changed)
        session.connection.changed.connect(self._on_link)

    @property
    def connected(self) -> bool:
        """True while the host answers."""
        return self.session.connection.connected

    @property
    def subtitle(self) -> str:
        """The line below the title."""
        if self.page is None:
            return "" if self.connected else tr("no connection")
        count = len(self.page.routes)
        return ntr("one route", "{n} routes", count)

    @property
    def routes(self) -> tuple[RouteStatus, ...]:
        """All routes, by id."""
        return self.page.routes if self.page is not None else ()

    @property
    def running(self) -> tuple[str, ...]:
        """The names of the engines that run, for who names targets."""
        return tuple(dict.fromkeys(engine.name for engine in self.session.state.live))

    def state_of(self, state: TargetState) -> tuple[str, str]:
        """Return the word for the state of a target, and its tone."""
        return STATES[state]

    def answers(self, status: RouteStatus) -> str:
        """Return what was seen of who is asked now, in words."""
        if status.answers is not None:
            return tr("answers") if status.answers else tr("does not answer")
        loads = any(target.state is TargetState.ON_DEMAND for target in status.targets)
        return tr("loaded when asked") if loads else tr("not asked yet")

    def set_shown(self, shown: bool) -> None:
        """Read while somebody looks."""
        self._shown = shown
        if shown:
            self.read()

    def pending(self, what: str) -> bool:
        """True while a command is on its way."""
        return what in self._pending

    def job(self, route: Route) -> Job | None:
        """Return the newest cut-over of a route, unless the route was changed after it."""
        touches = f"route {route.id}"
        jobs = self.session.state.jobs.values()
        mine = [job for job in jobs if job.kind is JobKind.ROUTE_CUTOVER and job.touches == touches]
        newest = max(mine, key=lambda job: job.created_at, default=None)
        if newest is None or (newest.ended_at is not None and newest.ended_at < route.changed_at):
            return None
        return newest

    def reveal(self, route_id: str) -> None:
        """Show a route among the others, as soon as it is there."""
        self.wanted = route_id
        self.revealed.emit()

    def read(self) -> None:
        """Read the routes again, while the page is shown."""
        if self._shown:
            self.load()

    def load(self) -> None:
        """Read the routes."""
        if not self.connected:
            return

        async def work(client: AsyncControlClient) -> None:
            self.page = await client.call(endpoint_ops.ROUTES)
            self.problem = None

        def failed(error: HostError) -> None:
            self.problem = None if error.lost else error.problem

        self.session.read("read the routes", work, done=self.changed.emit, failed=failed)

    def put(self, route_id: str, targets: RouteTargets, *, anyway: bool = False) -> None:
        """Make a route or lead it elsewhere; `saved` or `refused` follows."""

        async def work(client: AsyncControlClient) -> None:
            await client.call(endpoint_ops.SET_ROUTE, SetRoute.of(targets, anyway=anyway), id=route_id)
            self.saved.emit()

        self._send("set", work, self._refuse)

    def cut_over(self, route_id: str, targets: RouteTargets) -> None:
        """Lead a route elsewhere after a trial; `saved` follows when it has begun, or `refused`."""

        async def work(client: AsyncControlClient) -> None:
            await self.session.state.take(client.call(endpoint_ops.CUT_OVER, targets, id=route_id))
            self.saved.emit()

        self._send("cutover", work, self._refuse)

    def back(self, route_id: str) -> None:
        """Lead a route where it led before."""

        async def work(client: AsyncControlClient) -> None:
            await client.call(endpoint_ops.ROUTE_BACK, id=route_id)

        self._send(f"back {route_id}", work)

    def remove(self, route_id: str) -> None:
        """Forget a route, with undo."""
        targets = next((one.route.targets for one in self.routes if one.route.id == route_id), None)

        async def work(client: AsyncControlClient) -> None:
            self.page = await client.call(endpoint_ops.REMOVE_ROUTE, id=route_id)
            if targets is not None:
                self.session.notices.info(
                    "route removed",
                    tr("{route_id} is removed.", route_id=route_id),
                    action_text=tr("Undo"),
                    action=partial(self._make_again, route_id, targets),
                )

        self._send(f"remove {route_id}", work)

    def _make_again(self, route_id: str, targets: RouteTargets) -> None:
        async def work(client: AsyncControlClient) -> None:
            await client.call(endpoint_ops.SET_ROUTE, SetRoute.of(targets, anyway=True), id=route_id)

        self._send(f"undo removal of {route_id}", work)

    def cancel(self, job_id: str) -> None:
        """Cancel a cut-over."""

        async def work(client: AsyncControlClient) -> None:
            await self.session.state.take(client.call(ops.CANCEL_JOB, id=job_id))

        self._send(f"cancel {job_id}", work)

    def _send(
        self,
        what: str,
        work: Callable[[AsyncControlClient], Awaitable[None]],
        failed: Callable[[HostError], object] | None = None,
    ) -> None:
        self._pending.add(what)
        self.changed.emit()

        def done() -> None:
            self._pending.discard(what)
            self.read()
            self.changed.emit()

        self.session.command(f"routes {what}", work, done=done, failed=failed)

    def _refuse(self, error: HostError) -> None:
        self.refused.emit(error.problem)

    def _on_outdated(self, part: str) -> None:
        if part in ("routes", "all"):
            self.read()

    def _on_link(self) -> None:
        self.read()
        self.changed.emit()
