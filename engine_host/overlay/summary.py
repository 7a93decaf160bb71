"""The apply summary in one line: which process has how many patches, and why others are not there."""

from collections.abc import Sequence

from engine_host.protocol.patches import (
    PatchOutcome,
    PatchReason,
    PatchResult,
    ProcessPatches,
    ProcessRole,
)

REASONS = {
    PatchReason.ANCHOR_AMBIGUOUS: "anchor found more than once",
    PatchReason.ANCHOR_MISSING: "anchor moved",
    PatchReason.CONFLICT: "conflict",
    PatchReason.LEFT_OUT: "left out",
    PatchReason.MODULE_MISSING: "module missing",
    PatchReason.NOT_DEFAULT: "off by default",
    PatchReason.OUT_OF_RANGE: "other version",
    PatchReason.RAISED: "raised an error",
    PatchReason.REQUIREMENT_SKIPPED: "requirement missing",
    PatchReason.SHADOW_UNWRITABLE: "cache not writable",
    PatchReason.SIGNATURE_CHANGED: "signature changed",
    PatchReason.SWITCHED_OFF: "switched off",
    PatchReason.TARGET_MISSING: "target missing",
    PatchReason.TOO_LATE: "too late",
    PatchReason.UPSTREAM_MERGED: "fixed upstream",
    PatchReason.WRONG_ARCHITECTURE: "other architecture",
    PatchReason.WRONG_GPU: "other GPU",
    PatchReason.WRONG_KV_CACHE: "other KV cache",
    PatchReason.WRONG_PLATFORM: "other platform",
    PatchReason.WRONG_SPECULATION: "other speculation",
}
_NAMES = {
    ProcessRole.API_SERVER: "API server",
    ProcessRole.ENGINE_CORE: "EngineCore",
    ProcessRole.WORKER: "Worker",
    ProcessRole.HELPER: "Helper",
}
_SHOWN = (PatchOutcome.SKIPPED, PatchOutcome.FAILED, PatchOutcome.REVERTED)


def process_name(process: ProcessPatches) -> str:
    """A process for people: its role, and the rank of a worker."""
    name = _NAMES[process.role]
    return f"{name} {process.rank}" if process.rank is not None else name


def summary(processes: Sequence[ProcessPatches]) -> str:
    """`API server 3 applied · EngineCore 5 applied, 1 skipped (anchor moved) · Worker 0 …`."""
    return " · ".join(f"{process_name(process)} {_counts(process)}" for process in processes)


def _counts(process: ProcessPatches) -> str:
    parts = [f"{process.count(PatchOutcome.APPLIED)} applied"]
    for outcome in _SHOWN:
        found = [result for result in process.results if result.outcome is outcome]
        if found:
            parts.append(f"{len(found)} {outcome.value}{_why(found)}")
    if process.unreadable:
        parts.append(f"{process.unreadable} line{'s' if process.unreadable > 1 else ''} unreadable")
    return ", ".join(parts)


def _why(results: Sequence[PatchResult]) -> str:
    reasons = dict.fromkeys(REASONS[result.reason] for result in results if result.reason is not None)
    return f" ({', '.join(reasons)})" if reasons else ""
