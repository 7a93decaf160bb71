"""The fit of what is to be written down: fit's verdict, and what hardware lacks, as findings."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine_host.catalog.resolve import TargetHardware
from engine_host.core.errors import HostError
from engine_host.core.findings.table import finding
from engine_host.operations.fit import FitOperations, request_of
from engine_host.operations.presets.catalog import PresetOperations
from engine_host.operations.presets.fit import ENGINES, question, verdict_of
from engine_host.protocol.base import Severity
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.fit import DeviceFit, FitRequest, Verdict
from engine_host.protocol.launch.plans import Finding, LaunchPlan
from engine_host.protocol.presets import PresetVerdict, ResolvedPreset

_USABLE = (Verdict.FITS, Verdict.TIGHT)
_GIB = 2**30


@dataclass(frozen=True)
class DeployFit:
    """Judges starts that are written down, by the same arithmetic as every other verdict."""

    presets: PresetOperations
    fit: FitOperations

    async def of_preset(self, resolved: ResolvedPreset, model: str = "") -> tuple[Finding, ...]:
        """Return what is known of a preset on its hardware; `model` in its model's place.

        What the card says is needed becomes a warning where the arithmetic says that it fits all the same.
        Raises HostError(not_found) for an unknown model.
        """
        found = list(resolved.findings)
        if resolved.hardware is not None and resolved.preset.needs.gpus:
            verdict = await self._verdict(resolved, model)
            if verdict.needed is not None and verdict.verdict in _USABLE:
                found = [_softened(one) for one in found]
            found += _said(verdict, resolved, found)
        if any(one.severity is Severity.ERROR for one in found):
            instead = await self._instead(resolved)
            found = [one.model_copy(update={"fix": instead}) if _stops(one) else one for one in found]
        return tuple(found)

    async def of_plan(self, plan: LaunchPlan) -> tuple[Finding, ...]:
        """Return what fit says of a plan of this machine; what others hold now may be free when it starts."""
        try:
            ended = tuple(ref.id for ref in plan.instead_of)
            report = await self.fit.fit(request_of(plan).model_copy(update={"instead_of": ended}))
        except HostError as error:
            return (_unknown(error.problem.message, error.reason),)
        said = report.reason is Reason.CONTEXT_TOO_LONG  # By the plan's own findings.
        if report.verdict is Verdict.FITS or said or not report.devices:
            return ()
        fullest = min(report.devices, key=lambda device: device.free_after)
        if report.verdict is Verdict.DOES_NOT_FIT and fullest.needed <= fullest.room + fullest.taken:
            return (_held(fullest),)
        severity = Severity.WARNING if report.verdict is Verdict.TIGHT else Severity.ERROR
        made = finding(
            "render.memory/shorter",
            severity=severity,
            reason=None if severity is Severity.WARNING else report.reason or Reason.OUT_OF_MEMORY,
            evidence={"verdict": report.verdict.value, "needed": fullest.needed, "room": fullest.room},
            opening=_OPENINGS[report.verdict],
            device=fullest.name,
            sizes=_sizes(fullest.needed, fullest.room),
            why=None,
            longest=None,
        )
        told = {(one.reason, one.severity) for one in plan.findings}
        return () if (made.reason, made.severity) in told else (made,)

    async def _verdict(self, resolved: ResolvedPreset, model: str) -> PresetVerdict:
        count = max(resolved.count or 0, resolved.preset.needs.gpus)
        hardware = f"{count}x {resolved.hardware}"
        if model and resolved.engine in ENGINES:
            return await self._of_other_model(resolved, model, hardware)
        try:
            of_preset = await self.fit.model_of_preset(resolved)
        except HostError as error:
            return verdict_of(resolved, error, ())
        _, devices = await self.fit.devices(FitRequest(hardware=hardware))
        return verdict_of(resolved, of_preset, devices, self.fit.learnt)

    async def _of_other_model(self, resolved: ResolvedPreset, model: str, hardware: str) -> PresetVerdict:
        known = PresetVerdict(preset=resolved.preset.id, verdict=Verdict.UNKNOWN)
        asked = question(resolved, FitRequest(model=model, hardware=hardware))
        try:
            report = await self.fit.fit(asked)
        except HostError as error:
            if error.reason is not Reason.UNSUPPORTED:
                raise
            return known.model_copy(update={"reason": error.reason, "why": error.problem.message})
        fullest = min(report.devices, key=lambda device: device.free_after, default=None)
        sizes = {} if fullest is None else {"needed": fullest.needed, "room": fullest.room}
        return known.model_copy(
            update={"verdict": report.verdict, "reason": report.reason, "why": report.why, **sizes}
        )

    async def _instead(self, resolved: ResolvedPreset) -> Fix:
        """Return what to take on this hardware: the next preset of the chain of fallbacks that fits there."""
        machine = TargetHardware(resolved.hardware, resolved.count or 1)
        seen = {resolved.preset.id}
        next_id = resolved.preset.card.fallback
        while machine.hardware is not None and next_id is not None and next_id not in seen:
            seen.add(next_id)
            other = await self.presets.resolve_for(next_id, machine)
            verdict = await self._verdict(other, "")
            enough = other.preset.needs.gpus <= machine.count and not other.conflicts
            if enough and verdict.verdict in _USABLE and verdict.needed is not None:
                said = tr("{next_id}, to which it falls back, fits there.", next_id=next_id)
                return Fix(text=said, command=f"sndr presets show {next_id}")
            next_id = other.preset.card.fallback
        where = f" --hardware {machine.hardware}" if machine.hardware is not None else ""
        return Fix(text="See which presets work there.", command=f"sndr presets verdicts{where}")


_OPENINGS = {
    Verdict.TIGHT: "Memory is tight",
    Verdict.DOES_NOT_FIT: "It does not fit into memory",
    Verdict.CANNOT_RUN: "It cannot run",
}


def _said(verdict: PresetVerdict, resolved: ResolvedPreset, beside: Sequence[Finding]) -> tuple[Finding, ...]:
    """A verdict on hardware of the catalogue, where it says more than the findings beside it."""
    if resolved.engine not in ENGINES:
        return (_unknown(f"this program does not compute it for {resolved.engine.value}.", None),)
    if verdict.verdict is Verdict.FITS or any(one.severity is Severity.ERROR for one in beside):
        return ()
    if verdict.verdict is Verdict.UNKNOWN:
        return (_unknown(verdict.why, verdict.reason),)
    tight = verdict.verdict is Verdict.TIGHT
    longest = verdict.largest_context
    key = "render.memory/shorter" if tight or longest else "render.memory"
    return (
        finding(
            key if verdict.needed is not None else "render.cannot-run",
            severity=Severity.WARNING if tight else Severity.ERROR,
            reason=None if tight else verdict.reason or Reason.OUT_OF_MEMORY,
            evidence={
                "verdict": verdict.verdict.value,
                "needed": verdict.needed,
                "room": verdict.room,
                "largest_context": longest,
            },
            opening=_OPENINGS[verdict.verdict],
            device=None,
            sizes=_sizes(verdict.needed, verdict.room),
            why=None if verdict.why in {one.message for one in beside} else verdict.why,
            longest=longest or None,
        ),
    )


def _sizes(needed: int | None, room: int | None) -> str:
    if needed is None or room is None:
        return ""
    return f"{needed / _GIB:.1f} GiB are needed, and {room / _GIB:.1f} GiB are there."


def _softened(finding: Finding) -> Finding:
    """Return what the card says of memory, where the arithmetic knows better."""
    if finding.id != "preset.vram":
        return finding
    message = f"{finding.message} By the arithmetic it fits all the same."
    return finding.model_copy(update={"severity": Severity.WARNING, "message": message, "fix": None})


def _stops(finding: Finding) -> bool:
    """Tell whether a finding stops a start for what no setting mends and another preset may not need."""
    lacks = finding.id.startswith("preset.") or (finding.id.startswith("render.") and finding.fix is None)
    return finding.severity is Severity.ERROR and lacks


def _held(device: DeviceFit) -> Finding:
    return finding(
        "render.memory-held",
        evidence={"needed": device.needed, "room": device.room},
        device=device.name,
        sizes=_sizes(device.needed, device.room),
        taken=device.taken,
    )


def _unknown(why: str, reason: Reason | None) -> Finding:
    said = why if why.startswith("Whether it fits") else f"Whether it fits is not known: {why}"
    return finding("render.memory-unknown", reason=reason, why=said)
