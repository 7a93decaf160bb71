"""The changes of an install or a removal of a service, from what the machine says of itself."""

import difflib
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine_host.core.findings.table import finding
from engine_host.deploy.deployment import Deployment
from engine_host.deploy.placing import PlacedFile, placed
from engine_host.deploy.targets.parts import check_body
from engine_host.deploy.targets.render import render
from engine_host.protocol.language import tr
from engine_host.protocol.launch.deploy import RenderTarget
from engine_host.protocol.launch.plans import Finding
from engine_host.protocol.remote.hosts import THIS_MACHINE
from engine_host.protocol.remote.install import PlannedChange, RemoteChange
from engine_host.protocol.remote.services import (
    InstallService,
    ServiceManager,
    ServicePlan,
    ServiceState,
)
from engine_host.remote.services.answers import FoundService, Inspected

_DIFF_LINES = 400
RUNS = frozenset({ServiceState.RUNNING, ServiceState.STARTING, ServiceState.RESTARTING})


@dataclass(frozen=True)
class Wanted:
    """A service as it shall be on a machine.

    `sends` is a file of this machine that goes there first, to `sent_to`. `needs` are paths that have to be
    there already. `context` is of its model, in tokens.
    """

    host: str
    asked: InstallService
    deployment: Deployment
    files: tuple[PlacedFile, ...]
    findings: tuple[Finding, ...]
    context: int
    sends: Path | None = None
    sent_to: str = ""
    needs: tuple[str, ...] = field(default=())

    @property
    def name(self) -> str:
        """The service's name."""
        return self.deployment.name

    @property
    def manager(self) -> ServiceManager:
        """Its manager."""
        return self.asked.manager

    @property
    def image(self) -> str | None:
        """The image of a container; None for a unit."""
        return None if self.manager is ServiceManager.SYSTEMD else self.deployment.image

    @property
    def address(self) -> str:
        """Its address on its machine."""
        return f"http://127.0.0.1:{self.deployment.port}"

    @property
    def check(self) -> dict[str, Any]:
        """The requests that show that it computes."""
        deployment = self.deployment
        key = deployment.secrets[1].variable if len(deployment.secrets) > 1 else ""
        return {
            "address": self.address,
            "health": deployment.health,
            "path": deployment.check.path,
            "body": check_body(deployment),
            "model": deployment.alias,
            "key_variable": key,
            "start_seconds": deployment.start_seconds,
        }

    @property
    def facts(self) -> dict[str, Any]:
        """The facts that are written down beside its files."""
        deployment = self.deployment
        return {
            "manager": self.manager.value,
            "name": self.name,
            "title": deployment.title,
            "preset": self.asked.launch.preset or self.asked.launch.model,
            "model": deployment.alias,
            "engine": f"{deployment.engine.value} {deployment.version}",
            "address": self.address,
            "check": self.check,
        }

    def files_asked(self, *, whole: bool) -> list[dict[str, Any]]:
        """The files as a step takes them: by their hashes, and `whole` with their texts."""
        return [
            {
                "place": one.place,
                "name": one.name,
                "sha256": one.sha256,
                "executable": one.executable,
                "keep": one.keep,
                **({"text": one.text} if whole else {}),
            }
            for one in self.files
        ]


def wanted_of(host: str, asked: InstallService, deployment: Deployment, context: int) -> Wanted:
    """Return a service with its files. Raises HostError(unsupported) for what the manager cannot hold."""
    made = render(deployment, RenderTarget(asked.manager.value))
    left_out = {"render.engine-on-path"} if asked.program else set()
    findings = tuple(one for one in made.findings if one.id not in left_out)
    return Wanted(host, asked, deployment, placed(made), findings, context)


def decide(wanted: Wanted, said: Inspected) -> ServicePlan:
    """Return what an install does, with findings where it cannot be done."""
    findings = list(_findings(wanted, said))
    changes = list(_changes(wanted, said))
    runs = said.service.state in RUNS
    written = any(one.kind is not RemoteChange.RUN for one in changes)
    unchanged = (
        not written
        and not said.unfinished
        and said.manager is not None
        and (runs or not wanted.asked.start)
        and (wanted.image is not None or said.service.enabled in (None, wanted.asked.enable))
    )
    if runs and not unchanged and wanted.asked.start:
        findings.append(finding("service.restarts", name=wanted.name))
    return ServicePlan(
        host=wanted.host,
        manager=wanted.manager,
        name=wanted.name,
        title=wanted.deployment.title,
        address=wanted.address,
        model=wanted.deployment.alias,
        unchanged=unchanged,
        changes=() if unchanged else tuple(changes),
        findings=(*findings, *wanted.findings),
    )


def removal(host: str, service: FoundService, folder_files: Sequence[str], *, replace: bool) -> ServicePlan:
    """Return what a removal stops and removes."""
    unit = service.manager is ServiceManager.SYSTEMD
    stop = f"systemctl --user disable --now {service.name}.service" if unit else f"stop {service.name}"
    changes = [PlannedChange(kind=RemoteChange.RUN, what=stop)]
    changes += [PlannedChange(kind=RemoteChange.REMOVE, what=path) for path in folder_files]
    findings = []
    if service.changed and not replace:
        findings.append(
            finding(
                "service.changed-there", name=service.name, host=place_of(host), paths=list(service.changed)
            )
        )
    return ServicePlan(
        host=host,
        manager=service.manager,
        name=service.name,
        title=service.title or "",
        address=service.address,
        model=service.model,
        changes=tuple(changes),
        findings=tuple(findings),
    )


def place_of(host: str) -> str:
    """Return a machine's name as a sentence has it."""
    return "this machine" if host == THIS_MACHINE else host


def _unusable(wanted: Wanted, why: str) -> Finding:
    """Return the finding of a manager that cannot be used there."""
    manager, host = wanted.manager.value, place_of(wanted.host)
    if wanted.manager is not ServiceManager.SYSTEMD:
        return finding("service.unusable/container", manager=manager, host=host, why=why)
    preset = shlex.quote(wanted.asked.launch.preset) if wanted.asked.launch.preset else "PRESET"
    key = "service.unusable/here" if wanted.host == THIS_MACHINE else "service.unusable"
    return finding(key, manager=manager, host=host, why=why, preset=preset)


def _findings(wanted: Wanted, said: Inspected) -> Iterator[Finding]:
    host, name, asked = place_of(wanted.host), wanted.name, wanted.asked
    if not said.usable.usable:
        yield _unusable(wanted, said.usable.why)
    by_hand = [one.path for one in said.files if one.state == "by_hand"]
    preset = str(wanted.facts["preset"])
    here = wanted.host == THIS_MACHINE
    option = "--name" if here else "--service-name"
    container = "--in docker" if here else f"sndr host container install {host} {preset}"
    what = "the unit" if wanted.manager is ServiceManager.SYSTEMD else "a container"
    if said.manager is None and said.service.there and not said.unfinished:
        yield finding("service.foreign", host=host, name=name, what=what, option=option)
    elif said.manager is not None and (said.manager, said.preset) != (wanted.manager.value, preset):
        if said.manager != wanted.manager.value or not asked.replace:
            other = f"{said.preset or 'a start'} by {said.manager}"
            yield finding("service.other-start", host=host, name=name, what=other, option=option)
    elif by_hand and not asked.replace:
        yield finding("service.changed-there", host=host, name=name, paths=by_hand)
    if said.unfinished:
        yield finding("service.unfinished", host=host, name=name)
    if said.taken:
        yield finding("service.port-taken", host=host, port=wanted.deployment.port)
    if said.missing:
        yield finding("service.model-missing", host=host, paths=list(said.missing))
    for program, path in said.programs.items():
        if path is None:
            yield finding("service.engine-missing", host=host, program=program, container=container)
    if asked.enable and said.lingers is False:
        yield finding("service.no-linger", host=host, user=said.user)
    if wanted.manager is ServiceManager.PODMAN:
        yield finding("service.not-after-restart", host=host, name=name)


def _changes(wanted: Wanted, said: Inspected) -> Iterator[PlannedChange]:
    for file, there in zip(wanted.files, said.files, strict=True):
        size = len(file.text.encode())
        if there.state == "new":
            yield PlannedChange(kind=RemoteChange.ADD, what=there.path, size=size, text=_shown(file))
        elif there.state in ("changed", "by_hand"):
            note = tr("changed there by hand") if there.state == "by_hand" else ""
            yield PlannedChange(
                kind=RemoteChange.CHANGE, what=there.path, note=note, text=_diff(there.text, file.text)
            )
    for path in said.gone:
        yield PlannedChange(kind=RemoteChange.REMOVE, what=path)
    if wanted.sends is not None and not said.sent:
        note, whole = tr("the model, from here"), wanted.deployment.model_size
        yield PlannedChange(kind=RemoteChange.ADD, what=wanted.sent_to, size=whole, note=note)
    for words in _commands(wanted, said):
        yield PlannedChange(kind=RemoteChange.RUN, what=words)


def _commands(wanted: Wanted, said: Inspected) -> Iterator[str]:
    name, asked = wanted.name, wanted.asked
    if wanted.deployment.downloads:
        yield "./download.sh"
    if wanted.image is not None:
        if not said.image:
            yield f"{wanted.manager.value} pull {wanted.image}"
        if asked.enable and said.lingers is False:
            yield "loginctl enable-linger"
        if asked.start:
            yield "./start.sh"
        return
    if asked.enable and said.lingers is False:
        yield "loginctl enable-linger"
    yield "systemctl --user daemon-reload"
    yield f"systemctl --user {'enable' if asked.enable else 'disable'} {name}.service {name}-watchdog.timer"
    if asked.start:
        yield f"systemctl --user restart {name}.service {name}-watchdog.timer"


def _shown(file: PlacedFile) -> str:
    """The text of what a person reads first: units and start scripts, not our own programs."""
    return file.text if file.name.endswith((".service", ".timer", "start.sh")) else ""


def _diff(there: str, here: str) -> str:
    lines = difflib.unified_diff(there.splitlines(), here.splitlines(), "there", "new", lineterm="", n=2)
    return "\n".join(list(lines)[:_DIFF_LINES])
