"""Have a service carried out on a machine: planned, written, fetched, started and verified; or undone."""

import asyncio
import contextlib
import re
import shlex
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from engine_host.core.errors import HostError
from engine_host.core.findings.table import finding
from engine_host.protocol.base import Severity
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import Finding
from engine_host.protocol.remote.hosts import THIS_MACHINE
from engine_host.protocol.remote.services import (
    Service,
    ServiceAction,
    ServiceDone,
    ServiceManager,
    ServicePlan,
    ServiceState,
)
from engine_host.remote.install.answers import MachineAnswer
from engine_host.remote.install.machine import Machine
from engine_host.remote.services.answers import (
    Answered,
    FoundService,
    Inspected,
    Leaving,
    Lines,
    Progress,
    Put,
    Removed,
    Started,
    Surveyed,
    Undone,
)
from engine_host.remote.services.commands import list_command
from engine_host.remote.services.machine import ask
from engine_host.remote.services.plan import Wanted, decide, removal
from engine_host.remote.upload import upload

Tell = Callable[[str, str, float | None], None]
"""Says the name of the step, a detail, and the share of it that is done."""

Cancelled = Callable[[str, str], None]
"""Says what is there after an install was cancelled and taken back, or what is left of it."""

LOOK, WRITE, SEND, MODEL, IMAGE = (
    "Look at the machine",
    "Write the files",
    "Send the model",
    "Fetch the model",
    "Fetch the image",
)
START, WAIT = "Start it", "Wait until it answers"
_PAUSE = 2.0
_MOST_RESTARTS = 2
_TRIES = 20
_ENDED = frozenset({ServiceState.STOPPED, ServiceState.FAILED})
_LAYER = re.compile(r"([0-9a-f]{6,64}): (.+)")
_DONE_LAYER = ("Pull complete", "Already exists", "Download complete")


def steps_of(wanted: Wanted) -> tuple[str, ...]:
    """Return the names of the steps of an install, in their order."""
    some = (
        (LOOK, True),
        (WRITE, True),
        (SEND, wanted.sends is not None),
        (MODEL, bool(wanted.deployment.downloads)),
        (IMAGE, wanted.image is not None),
        (START, True),
        (WAIT, wanted.asked.start),
    )
    return tuple(name for name, there in some if there)


async def planned(machine: Machine, wanted: Wanted) -> ServicePlan:
    """Return what an install would do; nothing is changed there."""
    return decide(wanted, await inspect(machine, wanted))


async def inspect(machine: Machine, wanted: Wanted) -> Inspected:
    """Look at everything that an install would touch."""
    programs = []
    if wanted.manager is ServiceManager.SYSTEMD and not wanted.deployment.here:
        programs.append(wanted.deployment.program[0])
    return await ask(
        machine,
        "inspect",
        Inspected,
        name=wanted.name,
        manager=wanted.manager.value,
        files=wanted.files_asked(whole=False),
        needs=list(wanted.needs),
        programs=programs,
        image=wanted.image,
        port=wanted.deployment.port,
        sent_to=wanted.sent_to,
    )


async def install(machine: Machine, wanted: Wanted, tell: Tell, cancelled: Cancelled) -> ServiceDone:
    """Install a service, start it and see that it answers.

    Raises HostError with what stopped it; then what was there before is there again, and runs if it ran.
    One that is cancelled says to `cancelled` what became of that.
    """
    tell(LOOK, "", None)
    said = await inspect(machine, wanted)
    plan = decide(wanted, said)
    refuse(plan, wanted.asked.force)
    if plan.unchanged:
        if wanted.asked.start:
            tell(WAIT, "", None)
            await _wait(machine, wanted.manager, wanted.name, tell)
        return await _done(machine, wanted, plan.findings, unchanged=True)
    try:
        put = await _brought(machine, wanted, tell)
    except HostError as error:
        raise await _undone(machine, wanted, error) from error
    except asyncio.CancelledError:
        see = shlex.join(list_command(machine.name, wanted.manager))
        # Until it is known, and for good where this is cancelled once more.
        cancelled("", f"It is not known whether what was done there was taken back: {see}")
        try:
            cancelled(await asyncio.shield(_taken_back(machine, wanted)), "")
        except HostError as error:
            left = f"What was done there could not be taken back: {error.problem.message}"
            cancelled("", f"{left} The same command again goes on from there. See what is there: {see}")
        raise
    findings = [one for one in plan.findings if one.id not in {"service.restarts", "service.no-linger"}]
    if said.lingers is False and wanted.asked.enable and not put:
        findings.append(finding("service.no-linger", host=wanted.host, user=said.user))
    return await _done(machine, wanted, findings)


async def _brought(machine: Machine, wanted: Wanted, tell: Tell) -> bool:
    """Bring a service there and let it run; tell whether lingering was set for it."""
    which = {"name": wanted.name, "manager": wanted.manager.value}
    tell(WRITE, "", None)
    files = wanted.files_asked(whole=True)
    put = await ask(machine, "put", Put, **which, files=files, replace=wanted.asked.replace)
    if wanted.sends is not None:
        await upload(
            machine.runner,
            machine.name,
            wanted.sends,
            wanted.sent_to,
            progress=lambda done, size: tell(SEND, f"{done >> 20} of {size >> 20} MiB", done / max(size, 1)),
        )
    if wanted.deployment.downloads:
        await _fetched(machine, wanted, MODEL, tell, what="model")
    if wanted.image is not None:
        await _fetched(machine, wanted, IMAGE, tell, what="image", image=wanted.image)
    tell(START, wanted.name, None)
    asked = wanted.asked
    started = await ask(machine, "start", Started, **which, start=asked.start, enable=asked.enable)
    if asked.start:
        tell(WAIT, "", None)
        await _wait(machine, wanted.manager, wanted.name, tell, check=wanted.check)
    facts = {**wanted.facts, "lingering": started.lingering}
    files = wanted.files_asked(whole=False)
    await ask(machine, "settle", MachineAnswer, **which, files=files, facts=facts, made=list(put.made))
    return started.lingering


async def _fetched(machine: Machine, wanted: Wanted, step: str, tell: Tell, **asked: Any) -> None:
    """Fetch something there, and tell meanwhile what its program says."""
    tell(step, "", None)
    which = {"name": wanted.name, "manager": wanted.manager.value}
    async with _telling(machine, wanted.name, step, tell):
        await ask(machine, "fetch", MachineAnswer, **which, **asked)


@contextlib.asynccontextmanager
async def _telling(machine: Machine, name: str, step: str, tell: Tell) -> AsyncIterator[None]:
    async def watch() -> None:
        layers: dict[str, bool] = {}
        while True:
            await asyncio.sleep(_PAUSE)
            with contextlib.suppress(HostError):
                lines = (await ask(machine, "progress", Progress, name=name)).lines
                for line in lines:
                    if found := _LAYER.fullmatch(line.strip()):
                        done = found[2].startswith(_DONE_LAYER)
                        layers[found[1]] = layers.get(found[1], False) or done
                share = sum(layers.values()) / len(layers) if layers else None
                tell(step, lines[-1][:200] if lines else "", share)

    task = asyncio.create_task(watch())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _wait(
    machine: Machine, manager: ServiceManager, name: str, tell: Tell, *, check: dict[str, Any] | None = None
) -> None:
    """Wait until a service answers. Raises HostError: engine_start_failed, engine_start_timeout."""
    began = time.monotonic()
    while True:
        said = await ask(machine, "answers", Answered, name=name, manager=manager.value, check=check)
        if said.answered:
            return
        waited = time.monotonic() - began
        failed = said.service.state in _ENDED or (said.service.restarts or 0) >= _MOST_RESTARTS
        if failed or waited > said.start_seconds:
            raise await _not_answering(machine, said, timed_out=not failed)
        detail = f"{said.service.state.value}: {said.why}" if said.why else said.service.state.value
        tell(WAIT, detail[:200], min(0.99, waited / max(said.start_seconds, 1.0)))
        await asyncio.sleep(_PAUSE)


async def _not_answering(machine: Machine, said: Answered, *, timed_out: bool) -> HostError:
    service = said.service
    lines: list[str] = []
    with contextlib.suppress(HostError):
        told = await ask(
            machine,
            "logs",
            Lines,
            manager=service.manager.value,
            name=service.name,
            lines=30,
            after="",
            wait=0,
        )
        lines = [one.text[:500] for one in told.lines]
    where = "here" if machine.name == THIS_MACHINE else f"on {machine.name}"
    state = f"{service.state.value} ({service.detail})" if service.detail else service.state.value
    last = next((line for line in reversed(lines) if line.strip()), "")
    return HostError(
        Reason.ENGINE_START_TIMEOUT if timed_out else Reason.ENGINE_START_FAILED,
        tr(
            "{service} {where} does not answer: it is {state}.",
            service=service.name,
            where=where,
            state=state,
        ),
        cause=" ".join(part for part in (f"{said.why}." if said.why else "", last) if part),
        fix=Fix(text="Read its last lines, mend what they name, and do it again."),
        evidence={"host": machine.name, "state": service.state.value, "why": said.why, "lines": lines},
    )


async def _undone(machine: Machine, wanted: Wanted, error: HostError) -> HostError:
    """Take back what was done; the same error, saying what is there now."""
    problem, undone = error.problem, True
    try:
        told = await ask(machine, "undo", Undone, name=wanted.name, manager=wanted.manager.value)
        if not told.undone:
            return error
        left = _there_now(told)
    except HostError as other:
        undone = False
        left = f"What was done there could not be taken back: {other.problem.message}"
    update = {"message": f"{problem.message} {left}", "evidence": {**problem.evidence, "undone": undone}}
    return HostError.from_problem(problem.model_copy(update=update))


def _there_now(told: Undone) -> str:
    if told.running:
        return "What ran before runs again."
    return "Nothing of it is left." if told.first else "What was there before is there again."


async def _taken_back(machine: Machine, wanted: Wanted) -> str:
    """Take back what a cancelled install did, once the step that was under way there has ended.

    Tells what is there now. Raises HostError, of the connection too, where that could not be done.
    """
    for tries in range(_TRIES, 0, -1):
        try:
            told = await ask(machine, "undo", Undone, name=wanted.name, manager=wanted.manager.value)
        except HostError as error:
            if error.reason is not Reason.CONFLICT or tries == 1:
                raise
        else:
            return _there_now(told) if told.undone else "There was nothing to take back."
    return ""


async def act(
    machine: Machine, manager: ServiceManager, name: str, action: ServiceAction, wait: bool, tell: Tell
) -> ServiceDone:
    """Do something with a service of ours; a start has ended when it answers."""
    tell(action.value.capitalize(), name, None)
    which = {"name": name, "manager": manager.value}
    await ask(machine, "act", MachineAnswer, **which, action=action.value)
    if wait and action in (ServiceAction.START, ServiceAction.RESTART):
        tell(WAIT, "", None)
        await _wait(machine, manager, name, tell)
    return ServiceDone(
        host=machine.name, manager=manager, name=name, service=await shown(machine, manager, name)
    )


async def shown(machine: Machine, manager: ServiceManager, name: str) -> Service:
    """Return one service as it is now."""
    return service_of(await ask(machine, "show", FoundService, name=name, manager=manager.value))


async def planned_removal(
    machine: Machine, manager: ServiceManager, name: str, *, replace: bool
) -> ServicePlan:
    """Return what a removal stops and removes. Raises HostError(not_found) for one that is none of ours."""
    said = await ask(machine, "leaving", Leaving, name=name, manager=manager.value)
    return removal(machine.name, said.service, said.paths, replace=replace)


async def remove(machine: Machine, manager: ServiceManager, name: str, *, replace: bool) -> ServiceDone:
    """Stop a service of ours and remove what came with it."""
    which = {"name": name, "manager": manager.value}
    done = await ask(machine, "remove", Removed, **which, replace=replace)
    return ServiceDone(host=machine.name, manager=manager, name=name, removed=done.removed)


async def survey(machine: Machine) -> Surveyed:
    """Return all services of a machine, ours first."""
    return await ask(machine, "survey", Surveyed)


def service_of(found: FoundService) -> Service:
    """Return a service as it is shown; bytes that steer a terminal are shown where it is printed."""
    known = found.model_dump(exclude={"there", "title"})
    return Service(**known, title=found.title or "")


def refuse(plan: ServicePlan, force: bool) -> None:
    """Raise HostError for the first finding that stops what is planned; `force` is for those of a start."""
    for one in plan.findings:
        ours = one.id.startswith("service.")
        if one.severity is Severity.ERROR and (ours or not force):
            raise HostError(one.reason or Reason.UNSUPPORTED, one.message, fix=one.fix, evidence=one.evidence)


async def _done(
    machine: Machine, wanted: Wanted, findings: tuple[Finding, ...] | list[Finding], unchanged: bool = False
) -> ServiceDone:
    service = await shown(machine, wanted.manager, wanted.name)
    return ServiceDone(
        host=wanted.host,
        manager=wanted.manager,
        name=wanted.name,
        service=service,
        unchanged=unchanged,
        route=_route(wanted) if wanted.asked.start else "",
        findings=tuple(findings),
    )


def _route(wanted: Wanted) -> str:
    """The command that lets the endpoint here answer with it."""
    alias = wanted.deployment.alias
    if wanted.host != THIS_MACHINE:
        return shlex.join(["sndr", "routes", "set", alias, f"{wanted.host}/{alias}"])
    where = ["--provider", f"{wanted.address}/v1", "--model", alias, "--context", str(wanted.context)]
    return shlex.join(["sndr", "routes", "set", alias, *where, "--allow-remote"])
