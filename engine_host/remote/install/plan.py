"""The changes of an install, an update or a removal, from what the machine said of itself."""

import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from engine_host.core.findings.table import finding
from engine_host.protocol.base import Severity
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import Finding
from engine_host.protocol.remote.install import InstallOnHost, PlannedChange, RemoteChange, RemoteInstallPlan
from engine_host.protocol.remote.services import ServiceManager
from engine_host.remote.install.answers import FoundPython, InstallRecord, Probed, Unwritable
from engine_host.remote.install.own_wheel import LocalFile, pythons
from engine_host.remote.install.packages import Platform, platform_of
from engine_host.remote.install.there.probing import OPENMP
from engine_host.remote.install.unit import unit_of

# Measured: the environment with its packages, compiled, and what was uploaded beside it.
UNPACKED = 420 << 20
_ROOM = 200 << 20


@dataclass(frozen=True)
class Decided:
    """The plan, and what carrying it out needs besides."""

    plan: RemoteInstallPlan
    python: str
    platform: Platform | None
    from_here: bool
    unit: str
    needs: int


def decide(host: str, asked: InstallOnHost, said: Probed, wheel: LocalFile) -> Decided:
    """Return what an install or an update does, with findings where it cannot be done or not as wished."""
    findings: list[Finding] = []
    chosen = _python(said)
    platform, why_here = None, ""
    if chosen is None:
        found = ", ".join(one.text for one in said.pythons) or "none"
        findings.append(finding("remote.no-python", host=host, found=found))
    else:
        version = chosen.version[:2]
        platform = platform_of(version, said.machine, said.libc)
        why_here = _why_from_here(asked, chosen, said)
        if why_here and platform is None:
            libc = " ".join(said.libc).strip() or "another C library"
            findings.append(finding("remote.no-platform", machine=said.machine, libc=libc))
        elif why_here and not asked.offline:
            findings.append(finding("remote.packages-from-here", why=why_here))
    needs = UNPACKED + wheel.size + _ROOM
    if wheel.release not in said.releases and said.free < needs:
        findings.append(finding("remote.disk", host=host, free=said.free, path=said.root, needed=needs))
    if said.noexec:
        findings.append(finding("remote.noexec", host=host, path=said.root))
    findings += [_unwritable(host, one) for one in said.unwritable]
    if (why := said.damaged.get(wheel.release)) is not None:
        findings.append(finding("remote.damaged", host=host, release=wheel.release, why=why))
    elif (why := said.damaged.get(said.current or "")) is not None:
        findings.append(finding("remote.damaged/another", host=host, release=said.current, why=why))
    elif said.silent:
        findings.append(finding("remote.silent", host=host))
    findings += _of_what_runs(host, said)
    if said.lacks_openmp:
        findings.append(finding("remote.no-openmp", host=host, library=OPENMP))
    if not said.gpus:
        findings.append(finding("remote.no-gpu", host=host))
    service = "systemd" if said.systemd else "plain"
    if service == "plain":
        findings.append(plain(host, said, "this user has no service manager there"))
    unit = unit_of(said.root, said.environment)
    plan = RemoteInstallPlan(
        host=host,
        release=wheel.release,
        before=said.current,
        python=chosen.path if chosen else None,
        packages="here" if why_here else "index",
        service=service,
        changes=tuple(_changes(said, wheel, service, unit, chosen.path if chosen else "python3")),
        findings=tuple(findings),
    )
    return Decided(plan, plan.python or "", platform, bool(why_here), unit, needs)


def _unwritable(host: str, one: Unwritable) -> Finding:
    severity = Severity.ERROR if one.needed else Severity.WARNING
    path, variable = one.path, one.variable
    if one.why == "read-only":
        return finding("remote.read-only", severity=severity, host=host, path=path, variable=variable)
    if one.why == "not-theirs":
        return finding("remote.not-theirs", severity=severity, host=host, path=path, variable=variable)
    return finding("remote.no-folder", severity=severity, host=host, path=path, variable=variable)


def plain(host: str, said: Probed, why: str) -> Finding:
    """Return what a host without a service means, and what helps where something does.

    A machine that does not tell of lingering has no login manager that could permit it, and root needs no
    permission.
    """
    if said.lingers is None or said.user == "root":
        return finding("remote.plain/no-services", host=host, why=why)
    return finding("remote.plain", why=why, user=said.user)


def going_back(host: str, said: Probed, previous: str) -> RemoteInstallPlan:
    """Return what it changes to let the release before run again."""
    changed = RemoteChange.CHANGE
    service, current = "systemd" if said.systemd else "plain", said.current
    note = tr("was {current}", current=current) if current is not None else tr("what it led to is gone")
    changes = [PlannedChange(kind=changed, what=f"{said.root}/current -> {previous}", note=note)]
    if current is not None:
        back = f"{said.root}/previous -> {current}"
        changes += [
            PlannedChange(kind=changed, what=back, note=tr("was {previous}", previous=previous)),
            PlannedChange(
                kind=RemoteChange.KEEP, what=f"{said.root}/{current}", note="stays, one command away"
            ),
        ]
    changes += _service(said) if service == "systemd" else _process(said.root)
    return RemoteInstallPlan(
        host=host,
        release=previous,
        before=current,
        service=service,
        changes=tuple(changes),
        findings=tuple(_of_what_runs(host, said)),
    )


def removal(host: str, said: Probed) -> RemoteInstallPlan:
    """Return what an uninstall removes, and what it leaves because it was there before."""
    record = said.record or InstallRecord()
    made = set(record.made)
    changes = [PlannedChange(kind=RemoteChange.RUN, what="stop the engine host")]
    if record.service == "systemd":
        changes.append(PlannedChange(kind=RemoteChange.REMOVE, what=said.unit))
    if record.set_lingering and not said.services:
        changes.append(PlannedChange(kind=RemoteChange.RUN, what="loginctl disable-linger"))
    changes.append(PlannedChange(kind=RemoteChange.REMOVE, what=said.root))
    for path in said.own_data:
        stays = next((one for one in said.staying if os.path.dirname(one) == path), None)
        if path in made and stays is not None:
            note = tr("settings, data and models of the host there: it came with the install")
            changes.append(PlannedChange(kind=RemoteChange.REMOVE, what=f"{path}/*", note=note))
            changes.append(PlannedChange(kind=RemoteChange.KEEP, what=stays, note="of services, which go on"))
        elif path in made:
            note = tr("settings, data and models of the host there: it came with the install")
            changes.append(PlannedChange(kind=RemoteChange.REMOVE, what=path, note=note))
        else:
            changes.append(PlannedChange(kind=RemoteChange.KEEP, what=path, note="was there before"))
        if path in made:
            changes += [
                PlannedChange(
                    kind=RemoteChange.REMOVE,
                    what=one.path,
                    size=one.size,
                    note=tr(
                        "a model; to keep it: sndr host fetch {host} {shlex}",
                        host=host,
                        shlex=shlex.quote(one.path),
                    ),
                )
                for one in said.models
                if os.path.dirname(os.path.dirname(one.path)) == path
            ]
    findings = [one for one in _of_what_runs(host, said) if one.id != "remote.engines-end"]
    if said.services:
        findings.append(_staying(host, said))
    if said.engines:
        findings.append(finding("remote.engines-removed", names=[one.name for one in said.engines]))
    return RemoteInstallPlan(host=host, before=said.current, changes=tuple(changes), findings=tuple(findings))


def _staying(host: str, said: Probed) -> Finding:
    """Return the finding of services that stay, with the command that removes the first of them."""
    first = said.services[0]
    group = "unit" if first.manager == ServiceManager.SYSTEMD else "container"
    command = shlex.join(["sndr", "host", group, "remove", host, first.name])
    names = [one.name for one in said.services]
    return finding("remote.services-stay", host=host, names=names, command=command)


def _python(said: Probed) -> FoundPython | None:
    found = {one.version[:2]: one for one in reversed(said.pythons) if one.venv}
    return next((found[version] for version in pythons() if version in found), None)


def _why_from_here(asked: InstallOnHost, python: FoundPython, said: Probed) -> str:
    if asked.offline:
        return "that was asked for"
    if not python.ensurepip:
        return "its Python has no pip for new environments (python3-venv)"
    if said.index.reachable is None:
        return "whether a package index answers there cannot be tried without pip"
    return "" if said.index.reachable else "no package index answers there"


def _of_what_runs(host: str, said: Probed) -> Iterator[Finding]:
    running = said.running
    if running is not None and not running.ours:
        # Its Python alone, with the options before the module, would not say what it is.
        program = " ".join(running.argv[:5])
        yield finding("remote.other-host", host=host, pid=running.pid, program=program)
    if ending := [one.name for one in said.engines if not one.keep]:
        yield finding("remote.engines-end", names=ending)


def _changes(said: Probed, wheel: LocalFile, service: str, unit: str, python: str) -> Iterator[PlannedChange]:
    add, change, run = RemoteChange.ADD, RemoteChange.CHANGE, RemoteChange.RUN
    root = said.root
    if wheel.release not in said.releases:
        uploaded = f"{root}/incoming/{wheel.path.name}"
        yield PlannedChange(kind=add, what=uploaded, size=wheel.size, note="removed in the end")
        yield PlannedChange(kind=run, what=f"{python} -m venv {root}/{wheel.release}")
        whole = f"{root}/{wheel.release}"
        if wheel.release in said.damaged:
            yield PlannedChange(kind=change, what=whole, size=UNPACKED, note=tr("made anew: it is damaged"))
        else:
            yield PlannedChange(kind=add, what=whole, size=UNPACKED, note="about")
    if said.current != wheel.release:
        was = tr("was {current}", current=said.current) if said.current else ""
        yield PlannedChange(kind=change if was else add, what=f"{root}/current -> {wheel.release}", note=was)
    for name in (*said.releases, *said.damaged):
        if name not in {wheel.release, said.current}:
            yield PlannedChange(kind=RemoteChange.REMOVE, what=f"{root}/{name}", note="an older release")
    if service == "systemd":
        known = (said.record or InstallRecord()).service == "systemd"
        yield PlannedChange(kind=change if known else add, what=said.unit, text=unit)
        yield from _service(said)
    else:
        yield from _process(root)


def _service(said: Probed) -> Iterator[PlannedChange]:
    if said.lingers is not True:
        yield PlannedChange(
            kind=RemoteChange.RUN, what="loginctl enable-linger", note="where it is permitted"
        )
    for words in ("daemon-reload", "enable sndr-host.service", "restart sndr-host.service"):
        yield PlannedChange(kind=RemoteChange.RUN, what=f"systemctl --user {words}")


def _process(root: str) -> Iterator[PlannedChange]:
    yield PlannedChange(
        kind=RemoteChange.RUN,
        what=f"{root}/current/bin/python -P -m engine_host serve",
        note="in the background",
    )
