"""What `make gpu-check` calls right, on what a host could say."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from engine_host.protocol.engines import Verification
from engine_host.protocol.host import Gpu, GpuHolder
from engine_host.protocol.launch.fit import KV_TOKENS, Measured
from engine_host.protocol.patches import (
    EnginePatches,
    PatchOutcome,
    PatchProbe,
    PatchResult,
    PlannedPatches,
    ProcessPatches,
    ProcessRole,
)


@pytest.fixture
def judge(script: Callable[[str], ModuleType]) -> ModuleType:
    """The module with the rows."""
    return script("judge")


def verdicts(rows: Any) -> dict[str, bool | None]:
    """Each check with its verdict."""
    return {row.check: row.passed for row in rows}


def process(
    role: ProcessRole,
    *patches: str,
    rank: int | None = None,
    live: bool | None = True,
    **outcomes: PatchOutcome,
) -> ProcessPatches:
    """A process in which patches were applied, and others had another outcome."""
    probe = None if live is None else PatchProbe(at=1, live=live, why="" if live else "it is not", hits=2)
    applied = [PatchResult(patch=one, outcome=PatchOutcome.APPLIED, probe=probe) for one in patches]
    others = [PatchResult(patch=one, outcome=outcome) for one, outcome in outcomes.items()]
    return ProcessPatches(pid=1, role=role, rank=rank, since=1, overhead_ms=9, results=(*applied, *others))


def page(*processes: ProcessPatches, chosen: tuple[str, ...] = ("a", "b")) -> EnginePatches:
    """The summary of an engine."""
    planned = PlannedPatches(digest="d", chosen=chosen)
    return EnginePatches(seq=1, engine="e", planned=planned, processes=processes)


def test_a_ledger_with_everything_in_its_place(judge: ModuleType) -> None:
    found = page(
        process(ProcessRole.API_SERVER, "a"),
        process(ProcessRole.WORKER, "a", "b", rank=0),
        process(ProcessRole.WORKER, "a", "b", rank=1),
    )
    rows = list(judge.ledger("start", found))
    assert not [row for row in rows if row.passed is False]
    assert {row.check: row.found for row in rows}["patch b"] == "Worker 0, Worker 1"


def test_a_patch_that_is_nowhere_or_given_up_fails(judge: ModuleType) -> None:
    nowhere = verdicts(judge.ledger("start", page(process(ProcessRole.WORKER, "a", rank=0))))
    assert nowhere["ledger: each planned patch is applied"] is False
    assert nowhere["ledger: none given up"] is True
    given_up = page(process(ProcessRole.WORKER, "a", rank=0, b=PatchOutcome.SKIPPED))
    assert verdicts(judge.ledger("start", given_up))["ledger: none given up"] is False


def test_workers_that_differ_fail(judge: ModuleType) -> None:
    found = page(process(ProcessRole.WORKER, "a", "b", rank=0), process(ProcessRole.WORKER, "a", rank=1))
    assert verdicts(judge.ledger("start", found))["all workers have the same"] is False


def test_what_is_not_live_fails_and_helpers_are_not_asked(judge: ModuleType) -> None:
    helper = process(ProcessRole.HELPER, "a", live=None)
    well = page(process(ProcessRole.WORKER, "a", rank=0), helper)
    assert verdicts(judge.probe("start", well))["probe: what is applied is live"] is True
    for live in (False, None):
        ill = page(process(ProcessRole.WORKER, "a", rank=0, live=live), helper)
        assert verdicts(judge.probe("start", ill))["probe: what is applied is live"] is False
    assert verdicts(judge.probe("start", page(helper)))["probe: what is applied is live"] is False


def measured(part: str, predicted: int) -> Measured:
    """A part of which 1000 were made."""
    return Measured(
        at=1, engine="vllm", version="0.32.0", gpu="", patches="", model="m", part=part,
        predicted=predicted, measured=1000,
    )  # fmt: skip


def test_tokens_are_within_three_percent_and_bytes_are_figures(judge: ModuleType) -> None:
    parts = [measured(KV_TOKENS, 1031), measured("weights", 2000)]
    assert list(verdicts(judge.fit("start", parts)).values()) == [False, None]
    assert list(verdicts(judge.fit("start", [measured(KV_TOKENS, 1029)])).values()) == [True]
    assert list(verdicts(judge.fit("start", [])).values()) == [False]


def test_memory_is_found_on_as_many_gpus_as_were_given(judge: ModuleType) -> None:
    holder = GpuHolder(pid=7, name="vllm", memory=2**30)
    gpus = tuple(
        Gpu(index=index, uuid=str(index), name="H200", memory_total=9, memory_used=1, holders=holders)
        for index, holders in enumerate(((holder,), ()))
    )
    assert list(verdicts(judge.gpu_memory("start", gpus, [7], 1)).values()) == [True]
    assert list(verdicts(judge.gpu_memory("start", gpus, [7], 2)).values()) == [False]
    assert list(verdicts(judge.gpu_memory("start", gpus, [8], 1)).values()) == [False]


def test_equal_answers(judge: ModuleType) -> None:
    assert judge.equal("equal", [[1, 2], [3]], [[1, 2], [3]]).passed
    differs = judge.equal("equal", [[1, 2], [3]], [[1, 9], [3]])
    assert (differs.passed, differs.found) == (False, "1 of 2, differing: 0 from token 1")
    assert not judge.equal("equal", [[1]], [[1], [2]]).passed
    assert not judge.equal("equal", [], []).passed
    assert not judge.equal("equal", [[]], [[]]).passed


def test_drafts_are_read_off_vllms_counters(judge: ModuleType) -> None:
    text = """# HELP vllm:spec_decode_num_drafts_total x
vllm:spec_decode_num_drafts_total{engine="0"} 10.0
vllm:spec_decode_num_draft_tokens_total{engine="0"} 20.0
vllm:spec_decode_num_draft_tokens_total{engine="1"} 10.0
vllm:spec_decode_num_accepted_tokens_total{engine="0"} 5.0
"""
    row = judge.acceptance("start", judge.counters(text))
    assert (row.passed, row.found) == (True, "5 of 30 drafted tokens, length 1.50")
    assert not judge.acceptance("start", {}).passed


def test_an_engine_that_was_not_verified_fails(judge: ModuleType) -> None:
    assert list(verdicts(judge.ready("start", None, (), drafts=True)).values()) == [False]
    still = Verification(model_listed=True, token_generated=True, speculation_moved=False, ready_after=3)
    found = verdicts(judge.ready("start", still, (), drafts=True))
    assert (found["ready"], found["drafts are made"]) == (True, False)


def test_a_row_is_one_line_of_a_table(judge: ModuleType) -> None:
    row = judge.Row("start", "a check", False, "one | two\nthree")
    assert row.line() == "| start | a check | FAIL | one / two three |"
    assert judge.as_json([row], seconds=3)["failed"] == 1


def test_a_next_turn_computes_at_most_one_block_and_what_is_new(judge: ModuleType) -> None:
    metrics = 'vllm:cache_config_info{block_size="100",engine="0"} 1.0\n'

    def turns(*cached: int) -> list[dict[str, Any]]:
        first = {"prompt_tokens": 250, "prompt_tokens_details": None}
        return [first] + [
            {"prompt_tokens": 250 + 200 * turn, "prompt_tokens_details": {"cached_tokens": found}}
            for turn, found in enumerate(cached, 1)
        ]

    assert judge.found_again("reuse", turns(200, 400), metrics, asked=True).passed is True
    assert judge.found_again("reuse", turns(200, 300), metrics, asked=True).passed is False
    assert judge.found_again("reuse", turns(0, 0), metrics, asked=False).passed is None
    assert judge.found_again("reuse", turns(200), "", asked=True).passed is False
    assert judge.found_again("reuse", [], metrics, asked=True).passed is False
