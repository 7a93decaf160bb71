"""A preset installed on another machine as a unit or a container: its plan first, then a job."""

from __future__ import annotations

import shlex

from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.jobs import Job
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import LaunchRequest
from engine_host.protocol.operations import services as ops
from engine_host.protocol.remote.services import InstallService, ServiceManager
from sndr_gui.models.hosts.planned import AskedField, Planned, PlannedAction, Values, diff_of

_PORT = str(InstallService.model_fields["port"].default)


class InstallServiceAction(PlannedAction):
    """Have systemd, Docker or Podman there carry out a start."""

    verb = tr("Install")
    about = tr(
        "It goes on when every program of ours has ended. It is done when the engine "
        "answers; what fails or is cancelled is undone, and what ran before runs again."
    )

    def __init__(
        self, name: str, presets: tuple[str, ...] = (), manager: ServiceManager = ServiceManager.SYSTEMD
    ) -> None:
        self.title = tr("Install a service on {name}", name=name)
        self._name = name
        managers = tuple(one.value for one in ServiceManager)
        self.fields = (
            AskedField("preset", tr("Preset"), tr("by its id"), choices=presets, required=True),
            AskedField("manager", tr("Kept by"), value=manager.value, choices=managers, closed=True),
            AskedField(
                "model_path", tr("Model there"), tr("a file or folder there, if not the preset's own")
            ),
            AskedField("port", tr("Port"), tr("on loopback there"), value=_PORT, required=True),
            AskedField("name", tr("Name"), tr("the preset's"), more=True),
            AskedField("program", tr("Engine's program"), tr("its path there, for a unit"), more=True),
            AskedField("rehydrate", tr("Bring the model again if it is deleted there"), check=True),
            AskedField("enable", tr("Start it at boot"), value="yes", check=True),
            AskedField("start", tr("Start it now"), value="yes", check=True),
            AskedField("replace", tr("Replace what was changed there"), check=True),
        )

    def command(self, values: Values) -> str:
        said = {name: value.strip() for name, value in values.items()}
        is_unit = said["manager"] == ServiceManager.SYSTEMD.value
        words = ["sndr", "host", "unit" if is_unit else "container", "install", self._name]
        words.append(said["preset"] or "PRESET")
        words += [] if is_unit else ["--in", said["manager"]]
        words += ["--service-name", said["name"]] if said["name"] else []
        words += ["--model-path", said["model_path"]] if said["model_path"] else []
        words += ["--program", said["program"]] if said["program"] else []
        words += ["--rehydrate"] if said["rehydrate"] else []
        words += [] if said["start"] else ["--no-start"]
        words += [] if said["enable"] else ["--no-enable"]
        words += ["--port", said["port"]] if said["port"] not in ("", _PORT) else []
        words += ["--replace"] if said["replace"] else []
        words += ["--accept", said["consent"]] if said.get("consent") else []
        return shlex.join(words)

    async def plan(self, client: AsyncControlClient, values: Values) -> Planned:
        plan = await client.call(ops.PLAN_SERVICE, _asked(values), name=self._name)
        if plan.unchanged:
            return Planned(("  " + tr("It is there just so; nothing changes.")), plan.findings)
        where = (
            (
                "  "
                + tr(
                    "{name} answers as {model} at {address} there.",
                    name=plan.name,
                    model=plan.model,
                    address=plan.address,
                )
            )
            if plan.model
            else ""
        )
        return Planned("\n".join(filter(None, (where, diff_of(plan.changes)))), plan.findings)

    async def start(self, client: AsyncControlClient, values: Values) -> Job:
        return await client.call(ops.INSTALL_SERVICE, _asked(values), name=self._name)


def _asked(values: Values) -> InstallService:
    said = {name: value.strip() or None for name, value in values.items()}
    return InstallService.model_validate(
        {
            "launch": LaunchRequest(preset=said["preset"]),
            "manager": said["manager"],
            "name": said["name"],
            "port": said["port"],
            "model_path": said["model_path"],
            "program": said["program"],
            "rehydrate": True if said["rehydrate"] else None,
            "consent": said.get("consent"),
            **{name: said[name] == "yes" for name in ("enable", "start", "replace")},
        }
    )
