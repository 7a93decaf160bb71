"""The place of a start: beside the engines that run, or instead of some; and the room that this leaves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine_host.protocol.base import Severity
from engine_host.protocol.engines import Engine
from engine_host.protocol.host import Gpu
from engine_host.protocol.language import tr
from engine_host.protocol.launch.fit import FitReport, Verdict
from engine_host.protocol.launch.plans import ALL_ENGINES, Finding, LaunchPlan
from sndr_gui.kit import formats
from sndr_gui.kit.formats import listed

Ended = tuple[str, ...] | None
"""Public names of the engines that a start ends first; None for those with its own name."""

_NO_ROOM, _NAME_TAKEN = "no_room_beside", "name_taken"


@dataclass(frozen=True)
class Place:
    """One place to choose: its label, its key among the others, and the engines that it ends."""

    label: str
    instead_of: Ended

    @property
    def key(self) -> str:
        """The key in a list of choices."""
        return key_of(self.instead_of)


@dataclass(frozen=True)
class Remedy:
    """One click that makes a start possible: another place, or another name."""

    label: str
    instead_of: Ended = None
    name: str = ""


@dataclass(frozen=True)
class Room:
    """The plan's words on room, their tone, and what helps."""

    sentence: str
    tone: str = "muted"
    remedies: tuple[Remedy, ...] = ()


@dataclass(frozen=True)
class GpuOffer:
    """One GPU to choose: its UUID and name, what is free of it, and whether the plan computes on it."""

    uuid: str
    title: str
    chosen: bool
    planned: bool


def gpu_offers(
    gpus: Sequence[Gpu], chosen: Sequence[str], plan: LaunchPlan | None, build: str
) -> tuple[GpuOffer, ...]:
    """Return the GPUs to choose from; none where there is one at most, or the start uses none."""
    unused = build == "cpu" or (plan is not None and not plan.gpus)
    if len(gpus) < 2 or (unused and not chosen):
        return ()
    planned = plan.gpus if plan is not None else ()
    return tuple(
        GpuOffer(
            gpu.uuid,
            tr(
                "{index}: {removeprefix}, {size} free",
                index=gpu.index,
                removeprefix=gpu.name.removeprefix("NVIDIA ").removeprefix("GeForce "),
                size=formats.size(gpu.memory_free),
            ),
            gpu.uuid in chosen,
            gpu.uuid in planned,
        )
        for gpu in gpus
    )


def key_of(instead_of: Ended) -> str:
    """Return the key of a place."""
    return "" if instead_of is None else json.dumps(instead_of)


def places(live: Sequence[Engine], chosen: Ended, plan: LaunchPlan | None) -> tuple[Place, ...]:
    """Return the places to choose from; none while nothing runs."""
    if not live:
        return ()
    names = list(dict.fromkeys(engine.name for engine in live))
    found = [Place(_automatic(chosen, plan), None), Place(tr("Beside what runs"), ())]
    found += [Place(tr("Instead of {name}", name=formats.shortened(name)), (name,)) for name in names]
    if len(names) > 1:
        found.append(Place(tr("Instead of all"), (ALL_ENGINES,)))
    if chosen is not None and chosen not in [place.instead_of for place in found]:
        found.append(Place(tr("Instead of {chosen}", chosen=listed(chosen)), chosen))
    return tuple(found)


def still_there(chosen: Ended, live: Sequence[Engine]) -> Ended:
    """Return a choice without the engines that ended meanwhile."""
    if not chosen or ALL_ENGINES in chosen:
        return chosen if live else None
    names = {engine.name for engine in live}
    return tuple(name for name in chosen if name in names) or None


def room(plan: LaunchPlan | None, report: FitReport | None) -> Room:
    """Return what the plan says on room beside what goes on, and what it ends first."""
    if plan is None:
        return Room("")
    for finding in plan.findings:
        if finding.id == _NO_ROOM and finding.severity is Severity.ERROR:
            return _no_room(finding)
        if finding.id == _NAME_TAKEN and finding.severity is Severity.ERROR:
            return _name_taken(finding)
    beside, ended = [one.name for one in plan.beside], [one.name for one in plan.instead_of]
    left, tone = _left(plan, report)
    if beside and tone == "warn":
        return Room(tr("May not fit beside {beside}: {left}.", beside=listed(beside), left=left), "warn")
    parts = [tr("ends {ended} first", ended=listed(ended))] if ended else []
    parts += (
        [
            tr("fits beside {beside}", beside=listed(beside))
            if plan.startable
            else tr("beside {beside}", beside=listed(beside))
        ]
        if beside
        else []
    )
    said = ", ".join([*parts, left] if left and parts else parts)
    return Room(f"{said[:1].upper()}{said[1:]}." if said else "", "warn" if ended else "muted")


def _automatic(chosen: Ended, plan: LaunchPlan | None) -> str:
    if chosen is not None or plan is None:
        return tr("Automatic")
    return tr("Automatic (replaces one)") if plan.instead_of else tr("Automatic (runs alongside)")


def _left(plan: LaunchPlan, report: FitReport | None) -> tuple[str, str]:
    """Return the memory that is left on the fullest device, where it was computed for this place."""
    if (
        report is None
        or not report.devices
        or {one.id for one in report.beside} != {one.id for one in plan.beside}
    ):
        return "", ""
    if report.verdict is Verdict.DOES_NOT_FIT:
        missing = max(device.needed - device.room for device in report.devices)
        return tr("{size} are missing (estimated)", size=formats.size(missing)), "warn"
    left = min(device.free_after for device in report.devices)
    return tr("{size} left (estimated)", size=formats.size(left)), "muted"


def _names(evidence: dict[str, Any], name: str) -> tuple[str, ...]:
    found = evidence.get(name)
    return tuple(str(one) for one in found) if isinstance(found, list | tuple) else ()


def _no_room(finding: Finding) -> Room:
    told = dict(finding.evidence)
    missing, beside, ended = told.get("missing"), _names(told, "beside"), _names(told, "instead_of")
    if not isinstance(missing, int) or not ended:
        return Room(finding.message, "bad")
    values = {"size": formats.size(missing), "beside": listed(beside), "ended": listed(ended)}
    said = (
        tr(
            "Misses {size} in {device} beside {beside} (estimated); instead of {ended} it fits.",
            device=told["device"],
            **values,
        )
        if told.get("device")
        else tr("Misses {size} beside {beside} (estimated); instead of {ended} it fits.", **values)
    )
    remedies = [Remedy(tr("Instead of {ended}", ended=listed(ended, 2)), ended)]
    if set(ended) != set(beside):
        remedies.append(Remedy(tr("Instead of all"), (ALL_ENGINES,)))
    return Room(said, "bad", tuple(remedies))


def _name_taken(finding: Finding) -> Room:
    told = dict(finding.evidence)
    name, free = told.get("name"), told.get("free")
    if not isinstance(name, str) or not isinstance(free, str):
        return Room(finding.message, "bad")
    remedies = (
        Remedy(tr("Start as {free}", free=formats.shortened(free)), name=free),
        Remedy(tr("Instead of {name}", name=formats.shortened(name)), (name,)),
    )
    return Room(tr("{name} runs already under this name.", name=formats.shortened(name)), "bad", remedies)
