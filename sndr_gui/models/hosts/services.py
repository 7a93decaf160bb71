"""The units and containers of a machine: read, acted on, followed and removed."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.errors import Problem
from engine_host.protocol.jobs import Job
from engine_host.protocol.language import tr
from engine_host.protocol.operations import services as ops
from engine_host.protocol.operations import table
from engine_host.protocol.remote.services import (
    ActOnService,
    RemoveService,
    Service,
    ServiceAction,
    ServiceManager,
    ServicePage,
)
from sndr_gui.models.hosts.page import HostsModel
from sndr_gui.models.hosts.planned import AskedField, Planned, PlannedAction, Values, diff_of


def command_for(verb: str, host: str, service: Service) -> str:
    """Return the command that does something with a service."""
    if verb == "logs":
        return shlex.join(["sndr", "host", "logs", host, service.name])
    group = ["unit"] if service.manager is ServiceManager.SYSTEMD else ["container"]
    which = [] if service.manager is ServiceManager.SYSTEMD else ["--in", service.manager.value]
    return shlex.join(["sndr", "host", *group, verb, host, service.name, *which])


class ServicesModel(QObject):
    """The services of one host.

    Signals:
        changed: something was read, or could not be
    """

    changed = Signal()

    def __init__(self, hosts: HostsModel, name: str) -> None:
        super().__init__()
        self._hosts, self.name = hosts, name
        self.page: ServicePage | None = None
        self.presets: tuple[str, ...] = ()
        self.problem: Problem | None = None
        self._pending: set[str] = set()

    def pending(self, what: str) -> bool:
        """True while a command is on its way."""
        return what in self._pending

    def read(self) -> None:
        """Ask the machine what there is."""

        async def work(client: AsyncControlClient) -> None:
            self.page = await client.call(ops.SERVICES, name=self.name)

        self._send("services", work)

    def read_presets(self) -> None:
        """Read what could be installed."""

        async def work(client: AsyncControlClient) -> None:
            self.presets = tuple(one.preset.id for one in (await client.call(table.PRESETS)).presets)

        self._send("presets", work)

    def act(self, service: Service, action: ServiceAction) -> None:
        """Start, stop, restart, enable or disable one of ours; the job follows."""

        async def work(client: AsyncControlClient) -> None:
            act = client.call(
                ops.ACT_ON_SERVICE,
                ActOnService(action=action),
                name=self.name,
                manager=service.manager.value,
                service=service.name,
            )
            await self._hosts.session.state.take(act)

        self._send(f"{action.value} {service.name}", work)

    def _send(self, what: str, work: Callable[[AsyncControlClient], Awaitable[None]]) -> None:
        if what in self._pending or not self._hosts.connected:
            return
        self._pending.add(what)
        self.problem = None

        def failed(error: HostError) -> None:
            self.problem = error.problem

        def done() -> None:
            self._pending.discard(what)
            self.changed.emit()

        self._hosts.session.command(f"{what} {self.name}", work, done=done, failed=failed)
        self.changed.emit()


class RemoveServiceAction(PlannedAction):
    """Stop a service of ours and remove its files."""

    verb = tr("Remove")
    danger = True
    about = tr("It is stopped, and what was written down for it goes. Models stay.")
    fields = (AskedField("replace", tr("Remove also files that somebody changed there"), check=True),)

    def __init__(self, name: str, service: Service) -> None:
        self.title = tr("Remove {name} from {name_2}", name=service.name, name_2=name)
        self._name, self._service = name, service

    def command(self, values: Values) -> str:
        more = " --replace" if values["replace"] == "yes" else ""
        return command_for("remove", self._name, self._service) + more

    async def plan(self, client: AsyncControlClient, values: Values) -> Planned:
        asked = RemoveService(replace=values["replace"] == "yes")
        plan = await client.call(ops.PLAN_SERVICE_REMOVAL, asked, **self._path)
        return Planned(diff_of(plan.changes), plan.findings)

    async def start(self, client: AsyncControlClient, values: Values) -> Job:
        asked = RemoveService(replace=values["replace"] == "yes")
        return await client.call(ops.REMOVE_SERVICE, asked, **self._path)

    @property
    def _path(self) -> dict[str, str]:
        return {"name": self._name, "manager": self._service.manager.value, "service": self._service.name}
