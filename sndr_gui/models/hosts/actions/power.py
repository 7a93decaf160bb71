"""The power limit of a GPU of another machine, as a plan and a job."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.jobs import Job
from engine_host.protocol.language import tr
from engine_host.protocol.operations import services as ops
from engine_host.protocol.remote.services import GpuPower, SetPower
from sndr_gui.kit import formats
from sndr_gui.models.hosts.planned import AskedField, Planned, PlannedAction, Values, diff_of


class SetPowerAction(PlannedAction):
    """Set the limit of one GPU, or the driver's default again."""

    verb = tr("Set")
    about = tr(
        "The driver there gets the limit and it is read back, where that user is root "
        "or may run nvidia-smi by sudo; a restart of the machine forgets it. Without "
        "watts it is the default of the driver."
    )

    def __init__(self, name: str, gpus: Sequence[GpuPower]) -> None:
        self.title = tr("Power limit of a GPU of {name}", name=name)
        self._name = name
        choices = tuple(str(one.index) for one in gpus)
        bounds = next(iter(gpus), None)
        said = tr("the default")
        if bounds is not None and len(gpus) == 1:
            said = tr(
                "the default ({default}); {least} to {most}",
                default=watts(bounds.default),
                least=watts(bounds.minimum),
                most=watts(bounds.maximum),
            )
        self.fields = (
            AskedField("gpu", "GPU", value=choices[0] if choices else "", choices=choices, closed=True),
            AskedField("watts", tr("Watts"), said),
        )

    def command(self, values: Values) -> str:
        asked = values["watts"].strip()
        return shlex.join(["sndr", "host", "power", self._name, values["gpu"], asked or "--reset"])

    async def plan(self, client: AsyncControlClient, values: Values) -> Planned:
        plan = await client.call(ops.PLAN_POWER, _asked(values), name=self._name)
        same = plan.gpu is not None and not plan.changes and not plan.findings
        return Planned(
            ("  " + tr("It is the limit already.")) if same else diff_of(plan.changes), plan.findings
        )

    async def start(self, client: AsyncControlClient, values: Values) -> Job:
        return await client.call(ops.SET_POWER, _asked(values), name=self._name)


def watts(value: float | None) -> str:
    """Return watts as they are shown."""
    return formats.UNMEASURED if value is None else formats.measure(f"{value:.0f}", "W")


def _asked(values: Values) -> SetPower:
    said = values["watts"].strip()
    return SetPower.model_validate({"gpu": values["gpu"], "watts": said or None})
