"""The outcomes of patches in the processes of an engine, in words."""

from __future__ import annotations

from dataclasses import dataclass

from engine_host.protocol.language import tr
from engine_host.protocol.patches import (
    EnginePatches,
    Patch,
    PatchOutcome,
    PatchReason,
    ProcessPatches,
    ProcessRole,
)
from sndr_gui.models.patches.rows import NOT_HERE, PatchRow

# Its modules are not imported in that process, and often never will be.
_COUNT_LABELS = {"pending": tr("not used here")}
_WRONG = (PatchOutcome.SKIPPED, PatchOutcome.FAILED, PatchOutcome.REVERTED)
REASONS = {
    PatchReason.ANCHOR_AMBIGUOUS: tr("the text that it replaces occurs more than once"),
    PatchReason.ANCHOR_MISSING: tr("the text that it replaces is not in this vLLM"),
    PatchReason.CONFLICT: tr("another patch of this start excludes it"),
    PatchReason.LEFT_OUT: tr("this start was asked to leave it out"),
    PatchReason.MODULE_MISSING: tr("this vLLM has no such module"),
    PatchReason.NOT_DEFAULT: tr("it is not on unless it is asked for"),
    PatchReason.OUT_OF_RANGE: tr("it is for other versions of vLLM"),
    PatchReason.RAISED: tr("its code raised an error"),
    PatchReason.REQUIREMENT_SKIPPED: tr("a patch that it needs was not applied"),
    PatchReason.SHADOW_UNWRITABLE: tr("the changed source could not be written"),
    PatchReason.SIGNATURE_CHANGED: tr("the function that it replaces takes other arguments here"),
    PatchReason.SWITCHED_OFF: tr("it is switched off"),
    PatchReason.TARGET_MISSING: tr("this vLLM has no such function or class"),
    PatchReason.TOO_LATE: tr("its module was already imported"),
    PatchReason.UPSTREAM_MERGED: tr("this vLLM has the fix already"),
    PatchReason.WRONG_ARCHITECTURE: tr("it is for other model architectures"),
    PatchReason.WRONG_GPU: tr("it is for other GPUs"),
    PatchReason.WRONG_KV_CACHE: tr("it is for other KV-cache types"),
    PatchReason.WRONG_PLATFORM: tr("it is for another platform"),
    PatchReason.WRONG_SPECULATION: tr("it is for another kind of speculation"),
}
_ROLES = {
    ProcessRole.API_SERVER: tr("API server"),
    ProcessRole.ENGINE_CORE: "EngineCore",
    ProcessRole.WORKER: tr("Worker"),
    ProcessRole.HELPER: tr("Helper"),
}
# The outcome that a person must see first stands for the patch over all processes.
_WORST = (
    PatchOutcome.FAILED,
    PatchOutcome.REVERTED,
    PatchOutcome.APPLIED,
    PatchOutcome.PENDING,
    PatchOutcome.SKIPPED,
)


@dataclass(frozen=True)
class ProcessCard:
    """The outcomes of one process."""

    pid: int
    title: str
    counts: tuple[tuple[str, int], ...]

    @property
    def sentence(self) -> str:
        """The outcomes that occurred."""
        return ", ".join(
            f"{count} {_COUNT_LABELS.get(name, name)}" for name, count in self.counts if count
        ) or tr("none yet")


def process_name(process: ProcessPatches) -> str:
    """Return a process as vLLM's users call it."""
    rank = f" {process.rank}" if process.rank is not None else ""
    return _ROLES[process.role] + rank


def process_cards(applies: EnginePatches | None) -> tuple[ProcessCard, ...]:
    """Return one card a process, in order of their start; a helper only after trouble."""
    processes = sorted(applies.processes, key=lambda process: process.since) if applies else []
    return tuple(
        ProcessCard(
            process.pid,
            process_name(process),
            tuple((outcome.value, process.count(outcome)) for outcome in PatchOutcome),
        )
        for process in processes
        if process.role is not ProcessRole.HELPER or any(map(process.count, _WRONG))
    )


def reason_words(reason: PatchReason | None, detail: str = "") -> str:
    """Return the reason why a patch is not applied, in plain words."""
    words = REASONS[reason] if reason is not None else ""
    return f"{words} ({detail})" if words and detail else words or detail


def row_of(patch: Patch, applies: EnginePatches | None, pid: int | None = None) -> PatchRow:
    """Return the row of a patch: its outcome in the engine's processes, or else its switch."""
    if applies is None:
        return PatchRow(patch, patch.switch, patch.switched_by, None)
    results = [
        result
        for process in applies.processes
        if pid is None or process.pid == pid
        for result in process.results
        if result.patch == patch.id
    ]
    if results:
        worst = min(results, key=lambda result: _WORST.index(result.outcome))
        ms = max((result.ms for result in results if result.ms is not None), default=None)
        return PatchRow(patch, worst.outcome.value, reason_words(worst.reason, worst.detail), ms)
    planned = applies.planned
    if planned is not None:
        for decision in planned.left_out:
            if decision.patch == patch.id:
                return PatchRow(patch, tr("left out"), reason_words(decision.reason, decision.detail), None)
        if patch.id in planned.chosen and pid is None:
            return PatchRow(patch, "pending", tr("no process reported it yet"), None)
    return PatchRow(patch, NOT_HERE if pid is not None else patch.switch, "", None)
