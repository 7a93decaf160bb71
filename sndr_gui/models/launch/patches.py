"""The patches of a plan as Launch shows them: what is in, what is left out and why."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from engine_host.protocol.language import tr
from engine_host.protocol.patches import PatchDecision, PatchReason, PlannedPatches
from sndr_gui.kit import formats
from sndr_gui.models.patches.outcomes import reason_words

# What a person decides; every other reason is a fact about the model, the machine or the version.
_DECIDED = (PatchReason.LEFT_OUT, PatchReason.NOT_DEFAULT, PatchReason.SWITCHED_OFF)


@dataclass(frozen=True)
class PatchLine:
    """One patch of a start; `can_change`: the person may have it in or leave it out."""

    patch: str
    title: str
    chosen: bool
    can_change: bool
    why: str


def patch_lines(
    planned: PlannedPatches, titles: Mapping[str, str], without: Collection[str] = ()
) -> tuple[PatchLine, ...]:
    """One line a patch in order of application, then those left out; `without`: what the form leaves out."""
    inside = [
        PatchLine(
            name,
            titles.get(name, name),
            name not in without,
            name not in planned.required,
            _inside(name, planned),
        )
        for name in planned.chosen
    ]
    outside = [
        PatchLine(
            decision.patch,
            titles.get(decision.patch, decision.patch),
            False,
            decision.reason in _DECIDED,
            reason_of(decision),
        )
        for decision in planned.left_out
    ]
    return (*inside, *outside)


def summary(planned: PlannedPatches) -> str:
    """Return how many are in and how many are not."""
    inside = formats.plural(len(planned.chosen), "patch", "patches")
    return tr("{inside} in, {left_out} left out", inside=inside, left_out=len(planned.left_out))


def reason_of(decision: PatchDecision) -> str:
    """Return the reason why a patch is not part of a start, in words."""
    if decision.reason is PatchReason.LEFT_OUT:
        return tr("left out of this start")
    return reason_words(decision.reason, decision.detail)


def _inside(name: str, planned: PlannedPatches) -> str:
    return tr("vLLM is not started without it") if name in planned.required else ""
