"""Power limits of GPUs, here and on other machines: shown, planned, set and read back."""

import shlex
import time
from typing import Any

from engine_host.core.errors import HostError
from engine_host.core.findings.table import finding
from engine_host.core.jobs import JobControl, JobRunner
from engine_host.operations.performs import performs
from engine_host.operations.remote.units import Machines
from engine_host.protocol.base import Severity
from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import Finding
from engine_host.protocol.operations import services as ops
from engine_host.protocol.remote.hosts import THIS_MACHINE
from engine_host.protocol.remote.install import PlannedChange, RemoteChange
from engine_host.protocol.remote.services import GpuPower, PowerDone, PowerPage, PowerPlan, SetPower
from engine_host.remote.install.machine import Machine
from engine_host.remote.services.answers import Power, PowerSet
from engine_host.remote.services.machine import ask
from engine_host.remote.services.plan import place_of

_STEPS = 2


class PowerOperations:
    """The power limits; a limit is set where the user of that machine may set it."""

    def __init__(self, machines: Machines, jobs: JobRunner) -> None:
        self._machines = machines
        self._jobs = jobs

    @performs(ops.POWER)
    async def show(self, name: str) -> PowerPage:
        """Return the limits of a machine. Raises HostError, of the connection too."""
        found = await ask(self._machines.get(name), "power", Power)
        return PowerPage(
            host=name, read_at=time.time(), gpus=found.gpus, permitted=found.permitted, why=found.why
        )

    @performs(ops.PLAN_POWER)
    async def plan(self, name: str, asked: SetPower) -> PowerPlan:
        """Return what setting a limit would change. Raises HostError, of the connection too."""
        return await _planned(self._machines.get(name), asked)

    @performs(ops.SET_POWER)
    def set(self, name: str, asked: SetPower) -> Job:
        """Set a limit. Raises HostError: not_found, ssh_lost."""
        machine = self._machines.get(name)

        async def work(control: JobControl) -> dict[str, Any]:
            control.step(1, _STEPS, tr("Read the limits"))
            plan = await _planned(machine, asked)
            for one in plan.findings:
                if one.severity is Severity.ERROR:
                    raise HostError(
                        one.reason or Reason.UNSUPPORTED, one.message, fix=one.fix, evidence=one.evidence
                    )
            # Otherwise one of them was an error.
            assert plan.gpu is not None
            assert plan.watts is not None
            if not plan.changes:
                return PowerDone(host=name, gpu=plan.gpu, unchanged=True).model_dump(mode="json")
            control.step(2, _STEPS, tr("Set it and read it back"), tr("{watts} W", watts=plan.watts))
            done = await ask(machine, "set_power", PowerSet, uuid=plan.gpu.uuid, watts=plan.watts)
            return PowerDone(host=name, gpu=done.gpu).model_dump(mode="json")

        limit = ["--reset"] if asked.watts is None else [str(asked.watts)]
        before = ["sndr", "gpu", "power"] if name == THIS_MACHINE else ["sndr", "host", "power", name]
        command = shlex.join([*before, asked.gpu, *limit])
        return self._jobs.start(
            JobKind.GPU_POWER,
            tr("Power limit of GPU {gpu}", gpu=asked.gpu),
            f"power of {name}",
            command,
            work,
        )


async def _planned(machine: Machine, asked: SetPower) -> PowerPlan:
    found = await ask(machine, "power", Power)
    gpu = next((one for one in found.gpus if asked.gpu in (str(one.index), one.uuid)), None)
    if gpu is None or gpu.limit is None:
        why = found.why if not found.gpus else "its driver tells no limit" if gpu else None
        return PowerPlan(
            host=machine.name,
            gpu=gpu,
            findings=(_unknown(machine, asked, why) if found.gpus else _none(machine, asked, why),),
        )
    watts = asked.watts if asked.watts is not None else _whole(gpu.default)
    findings = []
    if watts is None:
        told = _unknown(machine, asked, "its driver tells no default limit")
        return PowerPlan(host=machine.name, gpu=gpu, findings=(told,))
    least, most = gpu.minimum, gpu.maximum
    if least is not None and most is not None and not least <= watts <= most:
        findings.append(
            finding("power.bounds", watts=watts, gpu=gpu.name or asked.gpu, minimum=least, maximum=most)
        )
    argv = f"sudo nvidia-smi --id={shlex.quote(gpu.uuid)} --power-limit={watts}"
    if abs(gpu.limit - watts) < 1:
        return PowerPlan(host=machine.name, gpu=gpu, watts=watts, findings=tuple(findings))
    if not found.permitted:
        findings.append(finding("power.not-permitted", host=place_of(machine.name), why=found.why, argv=argv))
    findings.append(finding("power.not-kept"))
    change = PlannedChange(
        kind=RemoteChange.CHANGE,
        what=f"power limit of {_name(gpu)}",
        text=f"-{gpu.limit:.0f} W\n+{watts} W",
    )
    return PowerPlan(host=machine.name, gpu=gpu, watts=watts, changes=(change,), findings=tuple(findings))


def _unknown(machine: Machine, asked: SetPower, why: str | None) -> Finding:
    command = "sndr gpu power" if machine.name == THIS_MACHINE else f"sndr host power {machine.name}"
    return finding("power.unknown", host=place_of(machine.name), gpu=asked.gpu, why=why, command=command)


def _none(machine: Machine, asked: SetPower, why: str | None) -> Finding:
    return finding("power.unknown/none", host=place_of(machine.name), gpu=asked.gpu, why=why)


def _name(gpu: GpuPower) -> str:
    return f"GPU {gpu.index} ({gpu.name})"


def _whole(watts: float | None) -> int | None:
    return None if watts is None else round(watts)
