"""Services as the control API shows and changes them: units and containers, here and on other machines."""

import asyncio
import os
import shlex
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine_host.catalog.recognise import recognise
from engine_host.core.errors import HostError
from engine_host.core.findings.table import finding
from engine_host.core.jobs import JobControl, JobRunner
from engine_host.core.package_data import resources
from engine_host.deploy.build import deployment_of
from engine_host.deploy.deployment import Deployment, Mount, name_of
from engine_host.deploy.spec import DeploySpec, ModelSource
from engine_host.operations.deploy import DeployOperations
from engine_host.operations.performs import performs
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.host import Gpu
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.language import tr
from engine_host.protocol.launch.deploy import RenderRequest, RenderTarget
from engine_host.protocol.operations import services as ops
from engine_host.protocol.remote.hosts import THIS_MACHINE, RemoteGpu, RemoteMode
from engine_host.protocol.remote.services import (
    ActOnService,
    InstallService,
    ManagerState,
    RemoveService,
    ServiceDone,
    ServiceLogQuery,
    ServiceLogs,
    ServiceManager,
    ServicePage,
    ServicePlan,
)
from engine_host.remote.hosts import RemoteHosts
from engine_host.remote.install.machine import Machine
from engine_host.remote.services import installing
from engine_host.remote.services.answers import FoundModel, Inspected, Lines
from engine_host.remote.services.commands import group_of, install_command
from engine_host.remote.services.installing import Tell
from engine_host.remote.services.machine import ThisMachine, ask
from engine_host.remote.services.plan import Wanted, wanted_of
from engine_host.remote.services.sources import watched
from engine_host.remote.transfer.files import Hashes
from engine_host.remote.transfer.sent import SentModel

_LARGEST_SENT = 64 << 20
"""Bytes of a model that an install sends along by itself."""
_CONTEXT = 4096


class Machines:
    """The machines that can be asked by their names: the connected ones, and this one."""

    def __init__(self, hosts: RemoteHosts, environment: Mapping[str, str]) -> None:
        self.hosts = hosts
        self._here = ThisMachine(environment)

    def get(self, name: str) -> Machine:
        """Return one. Raises HostError: not_found, ssh_lost."""
        if name == THIS_MACHINE:
            return Machine(name, self._here)
        self.hosts.connection(name)
        return Machine(name, self.hosts)


class ServiceOperations:
    """The services; what changes one machine is done one after the other."""

    def __init__(self, machines: Machines, jobs: JobRunner, deploy: DeployOperations) -> None:
        self._machines = machines
        self._jobs = jobs
        self._deploy = deploy

    @performs(ops.SERVICES)
    async def page(self, name: str) -> ServicePage:
        """Return all services of a machine, ours first. Raises HostError, of the connection too."""
        found = await installing.survey(self._machines.get(name))
        services = sorted(
            map(installing.service_of, found.services), key=lambda one: (not one.ours, one.manager, one.name)
        )
        managers = tuple(ManagerState(**one.model_dump()) for one in found.managers)
        return ServicePage(host=name, read_at=time.time(), managers=managers, services=tuple(services))

    @performs(ops.PLAN_SERVICE)
    async def plan(self, name: str, asked: InstallService) -> ServicePlan:
        """Return what an install would change. Raises HostError: of the start, of the connection."""
        machine = self._machines.get(name)
        return await installing.planned(machine, await self._wanted(machine, asked))

    @performs(ops.INSTALL_SERVICE)
    def install(self, name: str, asked: InstallService) -> Job:
        """Install a service. Raises HostError: not_found, ssh_lost."""
        machine = self._machines.get(name)

        async def work(control: JobControl) -> ServiceDone:
            control.step(1, 1, installing.LOOK, "", None)
            wanted = await self._wanted(machine, asked)

            def cancelled(undone: str, left: str) -> None:
                control.undone, control.left = undone, left

            tell = _teller(control, installing.steps_of(wanted))
            done = await installing.install(machine, wanted, tell, cancelled)
            if wanted.sends is not None and name != THIS_MACHINE:
                await self._keep_sent(name, wanted.sends, wanted.sent_to)
            if name == THIS_MACHINE or not done.route:
                return done
            if self._machines.hosts.book.get(name).mode is RemoteMode.ENGINE_HOST:
                told = finding("service.route-agentless", host=name)
                done = done.model_copy(update={"route": "", "findings": (*done.findings, told)})
            return done

        what = asked.launch.preset or asked.launch.model
        where = "this machine" if name == THIS_MACHINE else name
        title = f"Install {what} on {where} ({asked.manager.value})"
        return self._start(JobKind.SERVICE_INSTALL, title, name, install_command(name, asked), work)

    @performs(ops.ACT_ON_SERVICE)
    def act(self, name: str, manager: str, service: str, asked: ActOnService) -> Job:
        """Start, stop, restart, enable or disable one. Raises HostError: not_found, ssh_lost."""
        machine, kind = self._machines.get(name), _manager(manager)
        steps = [asked.action.value.capitalize(), installing.WAIT]

        async def work(control: JobControl) -> ServiceDone:
            tell = _teller(control, steps)
            return await installing.act(machine, kind, service, asked.action, asked.wait, tell)

        title = f"{asked.action.value.capitalize()} {service}"
        command = shlex.join([*group_of(name, kind), asked.action.value, *_named(name), service])
        return self._start(JobKind.SERVICE_ACTION, title, name, command, work)

    @performs(ops.PLAN_SERVICE_REMOVAL)
    async def plan_removal(self, name: str, manager: str, service: str, asked: RemoveService) -> ServicePlan:
        """Return what a removal would do. Raises HostError: not_found, and of the connection."""
        machine = self._machines.get(name)
        return await installing.planned_removal(machine, _manager(manager), service, replace=asked.replace)

    @performs(ops.REMOVE_SERVICE)
    def remove(self, name: str, manager: str, service: str, asked: RemoveService) -> Job:
        """Remove one. Raises HostError: not_found, ssh_lost."""
        machine, kind = self._machines.get(name), _manager(manager)

        async def work(control: JobControl) -> ServiceDone:
            control.step(1, 1, tr("Stop and remove"), service)
            return await installing.remove(machine, kind, service, replace=asked.replace)

        command = shlex.join([*group_of(name, kind), "remove", *_named(name), service, "--yes"])
        return self._start(JobKind.SERVICE_REMOVE, f"Remove {service}", name, command, work)

    @performs(ops.SERVICE_LOGS)
    async def logs(self, name: str, manager: str, service: str, asked: ServiceLogQuery) -> ServiceLogs:
        """Return lines of one. Raises HostError: not_found, and of the connection."""
        machine, kind = self._machines.get(name), _manager(manager)
        which = {"name": service, "manager": kind.value}
        told = await ask(
            machine, "logs", Lines, **which, lines=asked.lines, after=asked.after, wait=asked.wait
        )
        return ServiceLogs(
            host=name, manager=kind, name=service, lines=told.lines, cursor=told.cursor, note=told.note
        )

    def _start(
        self,
        kind: JobKind,
        title: str,
        name: str,
        command: str,
        work: Callable[[JobControl], Awaitable[ServiceDone]],
    ) -> Job:
        async def carry_out(control: JobControl) -> dict[str, Any]:
            try:
                return (await work(control)).model_dump(mode="json")
            finally:
                if name != THIS_MACHINE:
                    # One that failed or was cancelled has changed what runs there too.
                    self._machines.hosts.look(name)

        return self._jobs.start(kind, title, f"services of {name}", command, carry_out)

    async def _keep_sent(self, name: str, path: Path, sent_to: str) -> None:
        book = self._machines.hosts.book
        files = {sent_to: await Hashes().of(path)}
        to, destination = os.path.dirname(sent_to), book.get(name).destination
        book.sent.keep(SentModel(destination=destination, model=str(path), to=to, files=files))

    async def _wanted(self, machine: Machine, asked: InstallService) -> Wanted:
        """Return the service as it shall be there. Raises what planning a start raises."""
        here = machine.name == THIS_MACHINE
        request = RenderRequest(
            launch=asked.launch,
            target=RenderTarget(asked.manager.value),
            hardware=asked.hardware,
            count=asked.count,
            gpus=asked.gpus,
            port=asked.port,
            consent=asked.consent,
            force=True,
        )
        if not here:
            request = await self._on_its_gpus(machine.name, request)
        there: FoundModel | None = None
        if asked.model_path is not None:
            there = await _model_there(machine, asked.model_path)
        elsewhere = not here or asked.hardware is not None
        spec = await self._deploy.described(request, elsewhere=elsewhere, name=asked.name)
        preset = spec.model
        if there is not None:
            spec = replace(spec, model=_source_there(asked.model_path or "", there))
        sends, sent_to = None, ""
        if there is None and spec.model.path is not None and (not here or _goes_with_us(spec.model.path)):
            sends, sent_to = spec.model.path, await self._sent_to(machine, asked, spec)
            mounts = (Mount(Path(sent_to), Path(sent_to).name),)
            model = replace(
                spec.model, path=Path(sent_to), parts=(), mounts=mounts, inside=Path(sent_to).name
            )
            spec = replace(spec, model=model)
        deployment = await asyncio.to_thread(_deployment, spec, asked)
        if asked.rehydrate is False:
            deployment = replace(deployment, again=())
        elif asked.rehydrate and asked.manager is not ServiceManager.SYSTEMD:
            told = finding("service.no-watchdog", host=machine.name, preset=asked.launch.preset or "PRESET")
            deployment = replace(deployment, findings=(*deployment.findings, told))
        elif asked.rehydrate and sends is not None and not here:
            deployment = replace(deployment, awaited=True)
        elif asked.rehydrate and deployment.local:
            sent = [] if here else self._machines.hosts.book.sent_to(machine.name)
            found = there.sources if there is not None else ()
            deployment = watched(deployment, found, preset, sent, machine.name)
        wanted = wanted_of(machine.name, asked, deployment, spec.number("context", _CONTEXT))
        return replace(wanted, sends=sends, sent_to=sent_to, needs=there.files if there else ())

    async def _on_its_gpus(self, name: str, request: RenderRequest) -> RenderRequest:
        """The same for the GPUs that the machine was last seen to have."""
        facts = self._machines.hosts.book.facts(name)
        if not facts.read_at:
            facts = await self._machines.hosts.probe(name)
        preset = request.launch.preset
        if request.hardware is not None or not preset:
            return request
        catalog = await self._deploy.presets.catalog()
        needed = request.count or catalog.preset(preset).needs.gpus
        if not needed:
            return request
        if len(facts.gpus) < needed:
            told = finding("service.no-gpu", host=name, needed=needed, seen=len(facts.gpus))
            raise HostError(
                told.reason or Reason.UNSUPPORTED, told.message, fix=told.fix, evidence=told.evidence
            )
        freest = sorted(facts.gpus, key=lambda gpu: (gpu.memory_used or 0) - (gpu.memory_total or 0))[:needed]
        uuids = tuple(gpu.uuid for gpu in sorted(freest, key=lambda gpu: gpu.index))
        found = recognise(catalog, map(_gpu, facts.gpus))
        update = {"count": needed, "gpus": request.gpus or uuids, "hardware": found and found.hardware}
        return RenderRequest.model_validate({**request.model_dump(), **update})

    async def _sent_to(self, machine: Machine, asked: InstallService, spec: DeploySpec) -> str:
        """Return where a model of this machine goes there. Raises HostError for one that is too large."""
        path = spec.model.path
        size = spec.model.size or 0
        if path is None or path.is_dir() or len(spec.model.parts) > 1 or size > _LARGEST_SENT:
            told = finding("service.model-large", host=machine.name, size=size)
            raise HostError(
                told.reason or Reason.MODEL_FILE_MISSING, told.message, fix=told.fix, evidence=told.evidence
            )
        said = await ask(
            machine,
            "inspect",
            Inspected,
            name=name_of(spec.id),
            manager=asked.manager.value,
            files=[],
            port=asked.port,
        )
        return os.path.join(said.folder, "models", path.name)


def _goes_with_us(path: Path) -> bool:
    """Return True for a file of this program: an update moves it, and a service outlives that."""
    return path.resolve().is_relative_to(resources().resolve())


async def _model_there(machine: Machine, path: str) -> FoundModel:
    """Return a model that is on a machine. Raises HostError, of the connection too."""
    said = await ask(machine, "model", FoundModel, path=path)
    if not said.mounts:
        raise HostError(
            Reason.UNSUPPORTED,
            tr(
                "{path} cannot be mounted: its files are links to places that have nothing in common.",
                path=path,
            ),
            cause="One folder with all of them in it would be the root of the disk, or close to it.",
            fix="Give a folder that holds the files themselves.",
            evidence={"host": machine.name, "path": path},
        )
    return said


def _source_there(path: str, said: FoundModel) -> ModelSource:
    mounts = tuple(Mount(Path(one.source), one.name) for one in said.mounts)
    return ModelSource(
        Path(path).name, path=Path(path), mounts=mounts, inside=said.inside, size=said.size or None
    )


def _deployment(spec: DeploySpec, asked: InstallService) -> Deployment:
    made = deployment_of(spec)
    if asked.program is None:
        return made
    return replace(made, program=(asked.program, *made.program[1:]), here=True)


def _gpu(gpu: RemoteGpu) -> Gpu:
    return Gpu(
        index=gpu.index,
        uuid=gpu.uuid,
        name=gpu.name,
        memory_total=gpu.memory_total or 0,
        memory_used=gpu.memory_used or 0,
    )


def _manager(text: str) -> ServiceManager:
    try:
        return ServiceManager(text)
    except ValueError as error:
        names = ", ".join(one.value for one in ServiceManager)
        raise HostError(
            Reason.BAD_REQUEST,
            tr("{text} keeps no services.", text=repr(text)),
            fix=Fix(text=tr("It is one of: {names}.", names=names)),
            evidence={"manager": text[:100]},
        ) from error


def _teller(control: JobControl, steps: "tuple[str, ...] | list[str]") -> Tell:
    def tell(step: str, detail: str, share: float | None) -> None:
        control.step(steps.index(step) + 1, len(steps), step, detail, share)

    return tell


def _named(name: str) -> list[str]:
    return [] if name == THIS_MACHINE else [name]
