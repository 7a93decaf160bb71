"""The vLLM that starts of another machine use, as a plan and a job of its engine host."""

from __future__ import annotations

import shlex

from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.engines import PinVllm
from engine_host.protocol.jobs import Job
from engine_host.protocol.language import tr
from engine_host.protocol.operations import table as ops
from sndr_gui.models.hosts.planned import AskedField, Planned, PlannedAction, Values


class PinAction(PlannedAction):
    """Have starts there use another vLLM, which is installed first where it is missing."""

    verb = tr("Pin")
    about = tr("Engines that run go on with theirs. The pin before is kept, and one step leads back to it.")

    def __init__(self, name: str, versions: tuple[str, ...], now: str) -> None:
        self.title = tr("Pin vLLM on {name}", name=name)
        self._name = name
        self.fields = (
            AskedField(
                "version", "vLLM", tr("now: {now}", now=now), choices=("automatic", *versions), required=True
            ),
        )

    def command(self, values: Values) -> str:
        return shlex.join(["sndr", "host", "pin", self._name, "vllm", values["version"].strip() or "VERSION"])

    async def plan(self, client: AsyncControlClient, values: Values) -> Planned:
        return await _planned(client, PinVllm(version=values["version"].strip()))

    async def start(self, client: AsyncControlClient, values: Values) -> Job:
        return await client.call(ops.PIN, PinVllm(version=values["version"].strip()))


class PinBackAction(PlannedAction):
    """Use the pin again that was before the last change."""

    verb = tr("Go back")
    about = tr("Starts use the pin again that was before; it is installed first where it is missing.")

    def __init__(self, name: str) -> None:
        self.title = tr("Previous vLLM pin on {name}", name=name)
        self._name = name

    def command(self, _values: Values) -> str:
        return shlex.join(["sndr", "host", "pin", self._name, "--back"])

    async def plan(self, client: AsyncControlClient, _values: Values) -> Planned:
        return await _planned(client, PinVllm(back=True))

    async def start(self, client: AsyncControlClient, _values: Values) -> Job:
        return await client.call(ops.PIN, PinVllm(back=True))


async def _planned(client: AsyncControlClient, asked: PinVllm) -> Planned:
    plan = await client.call(ops.PLAN_PIN, asked)
    lines = [f"@{line[1:]}" if line.startswith("~") else line for line in plan.changes]
    return Planned("\n".join(lines) or ("  " + tr("{pin} is the pin already.", pin=plan.pin)))
