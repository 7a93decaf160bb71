"""Input fingerprints of a plan, by the names of the inputs; one that changed makes the plan stale."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine_host.launch.resolution import PresetStart
from engine_host.library.index import IndexedModel
from engine_host.protocol.base import Severity
from engine_host.protocol.host import Gpu
from engine_host.protocol.launch.plans import Finding, LaunchPlan, LaunchRequest

InputFingerprints = Mapping[str, str]


@dataclass(frozen=True)
class PlanInputs:
    """The request of a plan, with the model and the preset that it names."""

    plan_id: str
    request: LaunchRequest
    model: IndexedModel
    preset: PresetStart | None


@dataclass(frozen=True)
class PlanResult:
    """A plan, and what it was made from; the planner adds what every plan is made from.

    `short` are the bytes that are missing, by the devices of the plan's needs.
    """

    plan: LaunchPlan
    fingerprints: InputFingerprints
    short: Mapping[str, int] = field(default_factory=dict)


MEMORY_FINDINGS = ("memory_short", "vram_short", "vram_held")
"""Also a warning of these is news: what was enough is not any more."""


def files_fingerprint(paths: Iterable[Path], *more: str) -> str:
    """Changes when a file does. Raises OSError."""
    seen: list[object] = [*more]
    for path in paths:
        state = path.stat()
        seen.append((str(path), state.st_size, state.st_mtime_ns))
    return json.dumps(seen)


def gpus_fingerprint(gpus: Sequence[Gpu], driver: str | None) -> dict[str, str]:
    """The GPUs that are there, by their own ids and the driver's numbers, and their driver."""
    there = sorted((gpu.uuid, gpu.index, gpu.memory_total) for gpu in gpus)
    return {"the GPUs": json.dumps(there), "the driver": driver or ""}


def fingerprint(fingerprints: InputFingerprints) -> str:
    """Return the fingerprint of a plan."""
    return hashlib.sha256(json.dumps(sorted(fingerprints.items())).encode()).hexdigest()[:16]


def changed(before: InputFingerprints, now: InputFingerprints) -> tuple[str, ...]:
    """Return the names of the inputs that changed."""
    return tuple(name for name in {**before, **now} if before.get(name) != now.get(name))


def worse(before: Sequence[Finding], now: Sequence[Finding]) -> Finding | None:
    """Return a new error, or a new finding on memory; None without one."""
    stopped = {finding.id for finding in before if finding.severity is Severity.ERROR}
    short = {finding.id for finding in before}
    for finding in now:
        if finding.severity is Severity.ERROR and finding.id not in stopped:
            return finding
        if finding.id in MEMORY_FINDINGS and finding.id not in short:
            return finding
    return None
