"""The apply summary in one line."""

import pytest

from engine_host.overlay.summary import REASONS, process_name, summary
from engine_host.protocol.patches import (
    PatchOutcome,
    PatchReason,
    PatchResult,
    ProcessPatches,
    ProcessRole,
)

APPLIED, SKIPPED, FAILED = PatchOutcome.APPLIED, PatchOutcome.SKIPPED, PatchOutcome.FAILED


def process(
    role: ProcessRole,
    *results: tuple[PatchOutcome, PatchReason | None],
    rank: int | None = None,
    unreadable: int = 0,
) -> ProcessPatches:
    found = tuple(
        PatchResult(patch=f"p{number}", outcome=outcome, reason=reason)
        for number, (outcome, reason) in enumerate(results)
    )
    return ProcessPatches(pid=1, role=role, rank=rank, since=0, results=found, unreadable=unreadable)


def test_it_reads_as_the_issue_wants_it() -> None:
    processes = (
        process(ProcessRole.API_SERVER, *[(APPLIED, None)] * 3),
        process(ProcessRole.ENGINE_CORE, *[(APPLIED, None)] * 5, (SKIPPED, PatchReason.ANCHOR_MISSING)),
        process(ProcessRole.WORKER, rank=0),
    )
    assert summary(processes) == (
        "API server 3 applied · EngineCore 5 applied, 1 skipped (anchor moved) · Worker 0 0 applied"
    )


def test_reasons_are_named_once_and_outcomes_apart() -> None:
    one = process(
        ProcessRole.ENGINE_CORE,
        (SKIPPED, PatchReason.ANCHOR_MISSING),
        (SKIPPED, PatchReason.REQUIREMENT_SKIPPED),
        (SKIPPED, PatchReason.ANCHOR_MISSING),
        (FAILED, PatchReason.RAISED),
        (PatchOutcome.REVERTED, None),
        (PatchOutcome.PENDING, None),
    )
    assert summary([one]) == (
        "EngineCore 0 applied, 3 skipped (anchor moved, requirement missing), "
        "1 failed (raised an error), 1 reverted"
    )


@pytest.mark.parametrize(("lines", "said"), [(1, "1 line unreadable"), (2, "2 lines unreadable")])
def test_lines_that_could_not_be_read_are_counted(lines: int, said: str) -> None:
    assert summary([process(ProcessRole.HELPER, unreadable=lines)]) == f"Helper 0 applied, {said}"


def test_no_process_is_no_line() -> None:
    assert summary(()) == ""


@pytest.mark.parametrize("role", list(ProcessRole))
def test_every_role_has_a_name(role: ProcessRole) -> None:
    assert process_name(process(role, rank=3)).endswith(" 3")


def test_every_reason_has_words() -> None:
    assert set(REASONS) == set(PatchReason)
    assert len(set(REASONS.values())) == len(REASONS)
