"""Models sent to another machine and fetched from it, as plans and jobs."""

from __future__ import annotations

import shlex

from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.jobs import Job
from engine_host.protocol.language import tr
from engine_host.protocol.operations import remote_transfers as ops
from engine_host.protocol.remote.transfers import FetchModel, FileStanding, ModelTransferPlan, SendModel
from sndr_gui.kit import formats
from sndr_gui.models.hosts.planned import AskedField, Planned, PlannedAction, Values

_SIGNS = {FileStanding.NEW: "+", FileStanding.PART: "+", FileStanding.OTHER: "@", FileStanding.SAME: " "}
_REPLACE = AskedField("replace", tr("Replace other files of the same names"), check=True)


class SendAction(PlannedAction):
    """Send a model of this machine."""

    verb = tr("Send")
    about = tr(
        "Each file is in its place once its SHA-256 is right; what lies there already "
        "is not sent, and what broke off goes on where it stopped."
    )

    def __init__(self, name: str, models: tuple[str, ...], model_root: str | None) -> None:
        self.title = tr("Send a model to {name}", name=name)
        self._name = name
        root = (
            tr("the model folder there, {model_root}", model_root=model_root)
            if model_root
            else tr("a folder there")
        )
        self.fields = (
            AskedField("model", tr("Model here"), tr("an id, or a path"), choices=models, required=True),
            AskedField("to", tr("Folder there"), root),
            _REPLACE,
        )

    def command(self, values: Values) -> str:
        return _command("send", self._name, values)

    async def plan(self, client: AsyncControlClient, values: Values) -> Planned:
        return _planned(await client.call(ops.PLAN_SEND, SendModel(**_asked(values)), name=self._name))

    async def start(self, client: AsyncControlClient, values: Values) -> Job:
        return await client.call(ops.SEND_MODEL, SendModel(**_asked(values)), name=self._name)


class FetchAction(PlannedAction):
    """Fetch a model of another machine."""

    verb = tr("Fetch")
    about = tr(
        "Each file is in its place here once its SHA-256 is right; what lies here already is not fetched."
    )

    def __init__(self, name: str, models: tuple[str, ...]) -> None:
        self.title = tr("Fetch a model from {name}", name=name)
        self._name = name
        self.fields = (
            AskedField(
                "model", tr("Model there"), tr("an id, or a path there"), choices=models, required=True
            ),
            AskedField("to", tr("Folder here"), tr("the first model folder of this machine")),
            _REPLACE,
        )

    def command(self, values: Values) -> str:
        return _command("fetch", self._name, values)

    async def plan(self, client: AsyncControlClient, values: Values) -> Planned:
        return _planned(await client.call(ops.PLAN_FETCH, FetchModel(**_asked(values)), name=self._name))

    async def start(self, client: AsyncControlClient, values: Values) -> Job:
        return await client.call(ops.FETCH_MODEL, FetchModel(**_asked(values)), name=self._name)


def _asked(values: Values) -> dict[str, object]:
    to = values["to"].strip() or None
    return {"model": values["model"].strip(), "to": to, "replace": values["replace"] == "yes"}


def _command(verb: str, name: str, values: Values) -> str:
    words = ["sndr", "host", verb, name, values["model"].strip() or "MODEL"]
    words += ["--to", values["to"].strip()] if values["to"].strip() else []
    return shlex.join([*words, *(["--replace"] if values["replace"] == "yes" else [])])


def _planned(plan: ModelTransferPlan) -> Planned:
    notes = {
        FileStanding.NEW: "",
        FileStanding.PART: ", " + tr("{there} of it are there"),
        FileStanding.OTHER: ", " + tr("another file of this name is there"),
        FileStanding.SAME: ", " + tr("is there already"),
    }
    lines = [
        f"{_SIGNS[one.standing]} {plan.folder}/{one.name}  ({formats.size(one.size)}"
        f"{notes[one.standing].format(there=formats.size(one.there))})"
        for one in plan.files
    ]
    if not plan.left:
        lines.append("  " + tr("Nothing to transfer."))
    elif plan.free is None:
        lines.append(tr("$ transfer {size}", size=formats.size(plan.left)))
    else:
        size, free = formats.size(plan.left), formats.size(plan.free)
        lines.append(tr("$ transfer {size}; {free} are free", size=size, free=free))
    return Planned("\n".join(lines), plan.findings)
