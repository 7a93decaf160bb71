"""The patches of a plan, live or not, from ledgers and probes."""

import pytest

from engine_host.bench.checks.live_patches import live_patches
from engine_host.protocol.bench.checks import Outcome
from engine_host.protocol.patches import (
    EnginePatches,
    PatchOutcome,
    PatchProbe,
    PatchReason,
    PatchResult,
    PlannedPatches,
    ProcessPatches,
    ProcessRole,
)


def result(
    outcome: PatchOutcome, *, live: bool | None = None, reason: PatchReason | None = None
) -> PatchResult:
    probe = None if live is None else PatchProbe(at=1.0, live=live, why="" if live else "it was put back")
    return PatchResult(patch="a", outcome=outcome, reason=reason, probe=probe)


def found(*results: PatchResult, planned: tuple[str, ...] = ("a",)) -> EnginePatches:
    processes = [
        ProcessPatches(pid=number, role=ProcessRole.WORKER, since=1.0, results=(one,))
        for number, one in enumerate(results, 1)
    ]
    return EnginePatches(
        seq=0, engine="e", planned=PlannedPatches(digest="d", chosen=planned), processes=tuple(processes)
    )


@pytest.mark.parametrize(
    ("results", "outcome", "why"),
    [
        ((result(PatchOutcome.APPLIED, live=True),), Outcome.PASSED, ""),
        ((result(PatchOutcome.APPLIED, live=True), result(PatchOutcome.PENDING)), Outcome.PASSED, ""),
        ((result(PatchOutcome.PENDING),), Outcome.PASSED, ""),
        ((result(PatchOutcome.APPLIED),), Outcome.FAILED, "no process answered"),
        ((result(PatchOutcome.APPLIED, live=False),), Outcome.FAILED, "it was put back"),
        ((result(PatchOutcome.REVERTED),), Outcome.FAILED, "reverted"),
        (
            (result(PatchOutcome.SKIPPED, reason=PatchReason.ANCHOR_MISSING),),
            Outcome.FAILED,
            "skipped (anchor_missing)",
        ),
        ((), Outcome.FAILED, "no process has written of it"),
    ],
)
def test_a_patch_is_live_where_ledger_and_probe_say_so(
    results: tuple[PatchResult, ...], outcome: Outcome, why: str
) -> None:
    verdict = live_patches(found(*results))
    assert (verdict.outcome, why in verdict.why) == (outcome, True), verdict


def test_a_start_without_patches_is_skipped() -> None:
    assert live_patches(found(planned=())).outcome is Outcome.SKIPPED
