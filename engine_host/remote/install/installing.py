"""Install, update, take back and remove our host on a machine that is connected."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine_host.core.errors import HostError
from engine_host.core.findings.table import finding
from engine_host.protocol.base import Severity
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import Finding
from engine_host.protocol.remote.install import InstallOnHost, RemoteInstalled, RemoteInstallPlan
from engine_host.remote.install.answers import Begun, DemoAnswered, MachineAnswer, Probed, Removed, Switched
from engine_host.remote.install.machine import Machine, do
from engine_host.remote.install.own_wheel import LOCK, LocalFile, own_wheel, small_package
from engine_host.remote.install.packages import packages_for
from engine_host.remote.install.plan import Decided, decide, going_back, plain, removal
from engine_host.remote.install.unit import unit_of
from engine_host.remote.upload import upload

Tell = Callable[[str, str, float | None], None]
"""Says the name of the step, a detail, and the share of it that is done."""
Left = Callable[[str], None]
"""Takes the sentence that is true of that machine if the work is cancelled now."""

STEPS = (
    "Look at the machine",
    "Make the wheel",
    "Fetch the packages",
    "Upload",
    "Make the environment there",
    "Switch and start",
    "Ask the demo model",
)
_DEMO = STEPS[-1]
_OF_PLANS = {
    "remote.plain",
    "remote.plain/no-services",
    "remote.engines-end",
    "remote.damaged",
    "remote.silent",
}
"""What a plan says and its result does not: it is so by then, or is told anew."""
REMOVAL_STEPS = ("Look at the machine", "Stop and remove")
BACK_STEPS = ("Look at the machine", "Switch and start")
_INTERPRETERS = ("python3.12", "python3.13", "python3.11", "python3", "/usr/bin/python3")
_QUESTION = "Who are you?"
# Each waits there for the step that was cancelled; the longest is a switch, which goes on to its end.
_TRIES = 20
# What is uploaded is of no use after these; after others, above all a lost connection, the next try uses it.
_START_ANEW = {Reason.DISK_FULL, Reason.VERIFICATION_FAILED, Reason.CONFLICT, Reason.NOT_WRITABLE}

_UNTOUCHED = "Nothing was changed there."
_KEPT = "What was uploaded may be there still; the next try goes on from it."
_GOES_ON = "What was begun there goes on to its end: `sndr host list` tells what runs then."


@dataclass(frozen=True, slots=True)
class Workplace:
    """The folders here in which wheels and archives of packages are made; archives are kept."""

    wheels: Path
    packages: Path


def untold(_left: str) -> None:
    """Tell nobody what a cancelled work leaves."""


def steps_of(asked: InstallOnHost) -> tuple[str, ...]:
    """Return the names of the steps of an install, in their order."""
    return STEPS if asked.demo else STEPS[:-1]


async def planned(machine: Machine, asked: InstallOnHost, workplace: Workplace) -> RemoteInstallPlan:
    """Return what an install or an update would do; nothing is changed there."""
    said = await _probe(machine)
    return decide(machine.name, asked, said, await own_wheel(workplace.wheels)).plan


async def install(
    machine: Machine,
    asked: InstallOnHost,
    workplace: Workplace,
    tell: Tell,
    left: Left = untold,
    *,
    update: bool = False,
) -> RemoteInstalled:
    """Install this program's host there, or put it in the place of the release that runs.

    The old release stays until the new one answers, and comes back where that does not. Raises HostError with
    what stopped it; then nothing of a first install is left, but an upload that can be resumed.
    """
    left(_UNTOUCHED)
    tell(STEPS[0], "", None)
    said = await _probe(machine)
    if update and not said.installed:
        raise not_installed(machine.name)
    tell(STEPS[1], "", None)
    wheel = await own_wheel(workplace.wheels)
    decided = decide(machine.name, asked, said, wheel)
    refuse(decided.plan)
    findings = [one for one in decided.plan.findings if one.id not in _OF_PLANS]
    unchanged = said.serves(wheel.release)
    told = None
    if not unchanged:
        told = await _brought(machine, decided, wheel, workplace, said, tell, left)
        if told.service == "plain":
            findings.append(plain(machine.name, said, told.why_plain))
    left(f"{wheel.release} runs there.")
    came_from = told.before if told else said.previous
    answer = None
    if asked.demo:
        tell(_DEMO, "", None)
        answer = await _demo(machine, findings)
    return RemoteInstalled(
        host=machine.name,
        release=wheel.release,
        program=told.version.program if told else None,
        protocol=told.version.protocol if told else None,
        service=told.service if told else said.record.service if said.record else None,
        back_to=None if came_from in said.damaged else came_from,
        unchanged=unchanged,
        repaired=said.damaged.get(wheel.release),
        demo_answer=answer,
        findings=tuple(findings),
    )


async def back(machine: Machine, tell: Tell, left: Left = untold) -> RemoteInstalled:
    """Let the release before run again. Raises HostError(not_found) where none was kept."""
    left(_UNTOUCHED)
    tell(BACK_STEPS[0], "", None)
    said = await _probe(machine)
    plan = _way_back(machine, said)
    refuse(plan)
    release = str(plan.release)
    left(_GOES_ON)
    tell(BACK_STEPS[1], release, None)
    told = await do(machine, "switch", Switched, release=release, unit=unit_of(said.root, said.environment))
    return RemoteInstalled(
        host=machine.name,
        release=release,
        program=told.version.program,
        protocol=told.version.protocol,
        service=told.service,
        back_to=told.before,
    )


async def planned_back(machine: Machine) -> RemoteInstallPlan:
    """Return what going back would change. Raises HostError(not_found) where no release before was kept."""
    return _way_back(machine, await _probe(machine))


def _way_back(machine: Machine, said: Probed) -> RemoteInstallPlan:
    if not said.installed:
        raise not_installed(machine.name)
    if (before := next((one for one in said.damaged if one != said.current), None)) is not None:
        raise HostError(
            Reason.INSTALL_FAILED,
            tr("The release before on {machine}, {before}, is damaged.", machine=machine.name, before=before),
            cause=said.damaged[before],
            fix=Fix(text="Let this version run there.", command=f"sndr host update {machine.name}"),
        )
    if said.previous is None:
        raise HostError(
            Reason.NOT_FOUND,
            tr(
                "There is no release before {current} on {machine}.",
                current=said.current,
                machine=machine.name,
            ),
            cause="It was installed once, and not updated since.",
            fix=Fix(text="See what runs there.", command=f"sndr --host {machine.name} status"),
        )
    return going_back(machine.name, said, said.previous)


async def planned_removal(machine: Machine) -> RemoteInstallPlan:
    """Return what an uninstall would remove. Raises HostError(not_found) where nothing of ours is."""
    said = await _probe(machine)
    if said.record is None:
        raise not_installed(machine.name)
    return removal(machine.name, said)


async def uninstall(machine: Machine, tell: Tell, left: Left = untold) -> RemoteInstalled:
    """Stop our host there and remove what came with it; what was there before stays."""
    left(_UNTOUCHED)
    tell(REMOVAL_STEPS[0], "", None)
    said = await _probe(machine)
    if said.record is None:
        raise not_installed(machine.name)
    plan = removal(machine.name, said)
    refuse(plan)
    left(_GOES_ON)
    tell(REMOVAL_STEPS[1], "", None)
    done = await do(machine, "uninstall", Removed)
    stays = tuple(one for one in plan.findings if one.id == "remote.services-stay")
    return RemoteInstalled(host=machine.name, removed=done.removed, kept=done.kept, findings=stays)


def refuse(plan: RemoteInstallPlan) -> None:
    """Raise HostError for the first finding that stops what is planned."""
    for one in plan.findings:
        if one.severity is Severity.ERROR:
            raise HostError(
                one.reason or Reason.INSTALL_FAILED, one.message, fix=one.fix, evidence=one.evidence
            )


def not_installed(name: str) -> HostError:
    """Return the error of a machine on which nothing of ours is installed."""
    return HostError(
        Reason.NOT_FOUND,
        tr("Our engine host is not installed on {name}.", name=name),
        fix=Fix(text="Install it; --dry-run shows what that changes.", command=f"sndr host install {name}"),
    )


async def _probe(machine: Machine) -> Probed:
    return await do(machine, "probe", Probed, interpreters=list(_INTERPRETERS), small_package=small_package())


async def _brought(
    machine: Machine,
    decided: Decided,
    wheel: LocalFile,
    workplace: Workplace,
    said: Probed,
    tell: Tell,
    left: Left,
) -> Switched:
    """Bring the release there and start it; what a failure leaves is told or taken away."""
    bundle = None
    there = wheel.release in said.releases
    skipped = "that release is there already" if there else "not needed: the machine fetches them"
    if not decided.from_here or there:
        tell(STEPS[2], skipped, None)
    elif decided.platform is not None:
        tell(STEPS[2], f"for Python {decided.platform.version}", None)
        bundle = await packages_for(
            decided.platform, workplace.packages, lambda line: tell(STEPS[2], line, None)
        )
    left(_KEPT)
    try:
        if there:
            tell(STEPS[3], skipped, None)
            tell(STEPS[4], skipped, None)
        else:
            await machine.steadily(
                lambda: _uploaded(machine, decided, wheel, bundle, tell),
                lambda: tell(STEPS[3], f"the connection to {machine.name} broke, and is waited for", None),
            )
        tell(STEPS[5], wheel.release, None)
        return await do(machine, "switch", Switched, release=wheel.release, unit=decided.unit)
    except HostError as error:
        # Without a connection nothing can be taken away; the next try finds it and goes on.
        with contextlib.suppress(HostError):
            await do(machine, "abandon", Removed, drop_uploads=error.reason in _START_ANEW)
        raise
    except asyncio.CancelledError:
        with contextlib.suppress(HostError):
            left(await asyncio.shield(abandoned(machine, wheel.release)))
        raise


async def abandoned(machine: Machine, release: str) -> str:
    """Take away what a cancelled install left, once the step that was under way there has ended.

    A switch that was begun goes on to its end. Return what is so there then.
    """
    for _ in range(_TRIES):
        try:
            await do(machine, "abandon", Removed, drop_uploads=True)
        except HostError as error:
            if error.reason is not Reason.CONFLICT:
                raise
        else:
            break
    else:
        return _KEPT
    current = (await do(machine, "probe", Probed, interpreters=[], small_package=None)).current
    if current is None:
        return "Nothing of it is left there."
    return (
        f"{release} had been started by then, and stays." if current == release else f"{current} stays there."
    )


async def _uploaded(
    machine: Machine, decided: Decided, wheel: LocalFile, bundle: LocalFile | None, tell: Tell
) -> None:
    files = [one for one in (wheel, bundle) if one is not None]
    needs = decided.needs + (bundle.size if bundle else 0)
    begun = await do(machine, "begin", Begun, files=[one.path.name for one in files], needs=needs)
    total, done = sum(one.size for one in files), 0

    def share(at: int, _all: int) -> None:
        tell(STEPS[3], f"{done + at >> 20} of {total >> 20} MiB", (done + at) / total)

    for one in files:
        target = f"{begun.incoming}/{one.path.name}"
        await upload(machine.runner, machine.name, one.path, target, mode=0o600, progress=share)
        done += one.size
    where = "from what was sent" if bundle else "packages from the index there"
    tell(STEPS[4], where, None)
    await do(
        machine,
        "environment",
        MachineAnswer,
        release=wheel.release,
        python=decided.python,
        wheel=wheel.path.name,
        bundle=bundle.path.name if bundle else None,
        lock=LOCK.read_text(encoding="utf-8"),
    )


async def _demo(machine: Machine, findings: list[Finding]) -> str | None:
    try:
        done = await do(machine, "demo", DemoAnswered, question=_QUESTION)
    except HostError as error:
        findings.append(finding("remote.demo-failed", host=machine.name, why=error.problem.sentence()))
        return None
    return done.answer.text
