"""The view-model of one host: its sheet, its profile, its watchdogs and the routes that lead to it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.endpoint.routes import RouteStatus
from engine_host.protocol.errors import Problem
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import remote_hosts as ops
from engine_host.protocol.operations import remote_staging as staging
from engine_host.protocol.operations import remote_transfers as transfers
from engine_host.protocol.operations import services
from engine_host.protocol.remote.hosts import (
    ChangeRemoteHost,
    HostProfile,
    HostSheet,
    KeepProfile,
    RemoteFacts,
    RemoteHost,
    RemoteMode,
    WatchdogPage,
)
from engine_host.protocol.remote.services import PowerPage
from engine_host.protocol.remote.staging import Promotion
from engine_host.protocol.telemetry import Series, TelemetryQuery
from sndr_gui.models.hosts.page import HostsModel

SERIES_SECONDS = 600.0
"""The time that the lines of a host's figures go back."""


class HostDetailModel(QObject):
    """Reads what the sections of one host show; each is None until it was read.

    Signals:
        changed: something was read, or could not be
        saved: other facts were kept
    """

    changed = Signal()
    saved = Signal()

    def __init__(self, hosts: HostsModel, name: str) -> None:
        super().__init__()
        self.hosts, self.name = hosts, name
        self.sheet: HostSheet | None = None
        self.profile: HostProfile | None = None
        self.watchdogs: WatchdogPage | None = None
        self.power: PowerPage | None = None
        self.routes: tuple[RouteStatus, ...] | None = None
        self.series: tuple[Series, ...] = ()
        self.series_step = 0.0
        self.ids: tuple[str, ...] = ()
        self.promotions: tuple[Promotion, ...] = ()
        self.problems: dict[str, Problem] = {}
        self._pending: set[str] = set()
        self._stamp: tuple[object, ...] = ()
        hosts.changed.connect(self._on_hosts)
        hosts.session.state.outdated.connect(self._on_outdated)

    def close(self) -> None:
        """Look at the host no longer."""
        self.hosts.changed.disconnect(self._on_hosts)
        self.hosts.session.state.outdated.disconnect(self._on_outdated)

    @property
    def remote(self) -> RemoteHost | None:
        """The host as it is kept, with the state of its connection."""
        return self.hosts.fleet.remote(self.name)

    @property
    def facts(self) -> RemoteFacts | None:
        """The facts as they were last read."""
        return self.hosts.facts.get(self.name)

    @property
    def is_connected(self) -> bool:
        """True while its connection stands."""
        remote = self.remote
        return self.hosts.connected and remote is not None and remote.connected_at is not None

    def pending(self, what: str) -> bool:
        """True while a command is on its way."""
        return what in self._pending

    def read(self) -> None:
        """Read what needs no connection."""

        async def work(client: AsyncControlClient) -> None:
            self.sheet = await client.call(ops.HOST_SHEET, name=self.name)
            self.profile = await client.call(ops.HOST_PROFILE, name=self.name)

        self._send("read", work)
        self.read_routes()

    def read_routes(self) -> None:
        """Read which routes lead to it."""

        async def work(client: AsyncControlClient) -> None:
            page = await client.call(endpoint_ops.ROUTES)
            self.routes = tuple(one for one in page.routes if self._leads_here(one))
            self.ids = tuple(one.route.id for one in page.routes)
            self.promotions = (await client.call(staging.PROMOTIONS, name=self.name)).promotions

        self._send("routes", work)

    def read_series(self) -> None:
        """Read the figures of the last minutes of a machine without an engine host."""
        remote = self.remote
        if remote is None or remote.mode is not RemoteMode.AGENTLESS or not self.is_connected:
            return
        since = time.time() - SERIES_SECONDS

        async def work(client: AsyncControlClient) -> None:
            asked = TelemetryQuery(since=since)
            page = await client.call(transfers.HOST_TELEMETRY, asked, name=self.name)
            self.series, self.series_step = page.series, page.step

        self._send("series", work)

    def read_watchdogs(self) -> None:
        """Ask the machine what its watchdogs saw."""

        async def work(client: AsyncControlClient) -> None:
            self.watchdogs = await client.call(ops.HOST_WATCHDOGS, name=self.name)

        self._send("watchdogs", work)

    def read_power(self) -> None:
        """Ask the machine for the power limits of its GPUs."""

        async def work(client: AsyncControlClient) -> None:
            self.power = await client.call(services.POWER, name=self.name)

        self._send("power", work)

    def keep_profile(self, asked: KeepProfile) -> None:
        """Keep engines of the facts as right; the sheet says from then on what differs."""

        async def work(client: AsyncControlClient) -> None:
            self.profile = await client.call(ops.KEEP_PROFILE, asked, name=self.name)
            self.sheet = await client.call(ops.HOST_SHEET, name=self.name)

        self._send("profile", work)

    def change(self, asked: ChangeRemoteHost) -> None:
        """Keep other facts about it; `saved` follows, or a problem."""

        async def work(client: AsyncControlClient) -> None:
            await self.hosts.session.state.take(client.call(ops.CHANGE_HOST, asked, name=self.name))
            self.saved.emit()

        self._send("change", work)

    def _leads_here(self, status: RouteStatus) -> bool:
        return any(engine.startswith(f"{self.name}/") for engine in status.route.targets.engines)

    def _on_hosts(self) -> None:
        remote = self.remote
        stamp = (remote.facts_at, remote.state, remote.models) if remote is not None else ()
        if stamp != self._stamp:
            # Other facts make another sheet, and another state other routes that answer.
            self._stamp = stamp
            if remote is not None:
                self.read()
        self.changed.emit()

    def _on_outdated(self, part: str) -> None:
        if part in ("routes", "all"):
            self.read_routes()

    def _send(self, what: str, work: Callable[[AsyncControlClient], Awaitable[None]]) -> None:
        if what in self._pending or not self.hosts.connected:
            return
        self._pending.add(what)
        self.problems.pop(what, None)

        def failed(error: HostError) -> None:
            self.problems[what] = error.problem

        def done() -> None:
            self._pending.discard(what)
            self.changed.emit()

        self.hosts.session.command(f"{what} {self.name}", work, done=done, failed=failed)
        self.changed.emit()
