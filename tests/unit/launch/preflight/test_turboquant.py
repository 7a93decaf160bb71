"""Which kernels TurboQuant gets, and what is refused since it would answer wrongly."""

import importlib.util
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from engine_host.launch.preflight.turboquant import HEAD_SIZES, KV_TYPES, MOST_ROWS, PATCH, PROVEN
from engine_host.overlay import patches
from engine_host.protocol.base import Severity
from engine_host.protocol.bench.proofs import ProofVerdict, ProveKernels
from engine_host.protocol.errors import Reason
from engine_host.protocol.host import Gpu
from engine_host.protocol.launch.plans import Finding, LaunchPlan
from engine_host.protocol.operations.table import PROVE
from engine_host.protocol.patches import PatchDecision, PatchReason, PlannedPatches
from tests.unit.launch.proofs import proof
from tests.unit.launch.vllm_desk import HYBRID, Desk, finding, gpu
from tests.unit.library.checkpoints import checkpoint, tensors

K8V4 = "turboquant_k8v4"


def card(sm: str, name: str) -> Gpu:
    return gpu(0).model_copy(update={"compute_capability": sm, "name": name})


@pytest.fixture
def desk(home: Path) -> Desk:
    made = Desk(home)
    checkpoint(made.folder, tensors(a=(8,), mtp__b=(2,)), **HYBRID, head_dim=64)
    made.cuda(card("9.0", "NVIDIA H200"))
    made.patches = PlannedPatches(digest="d", chosen=(PATCH,))
    return made


def left_out(reason: PatchReason, detail: str) -> PlannedPatches:
    return PlannedPatches(
        digest="d", chosen=(), left_out=(PatchDecision(patch=PATCH, reason=reason, detail=detail),)
    )


def refused(plan: LaunchPlan) -> Finding:
    assert not plan.startable
    found = finding(plan, "turboquant_speculation")
    assert (found.severity, found.reason) == (Severity.ERROR, Reason.KV_TYPE_UNSUPPORTED)
    assert found.fix is not None
    return found


def ways(found: Finding) -> dict[str, Any]:
    assert found.fix is not None
    return found.fix.settings


def test_a_plan_says_which_kernels_run_and_where_they_were_seen_to_be_right(desk: Desk) -> None:
    plan = desk.plan(kv_cache_dtype=K8V4, speculation="mtp")
    assert plan.startable
    said = finding(plan, "turboquant_kernels")
    assert said.severity is Severity.INFO
    assert "kernels for Hopper" in said.message
    assert "seen right on NVIDIA H200 with vLLM 0.32.0" in said.message
    for other in (
        card("8.6", "NVIDIA GeForce RTX 3090"),
        card("9.0", "NVIDIA GH200 480GB"),
        card("9.0", "NVIDIA H800"),
    ):
        desk.cuda(other)
        new = finding(desk.plan(kv_cache_dtype=K8V4, speculation="mtp"), "turboquant_kernels")
        assert f"not proven on {other.name}" in new.message
    for seen in ("NVIDIA H100 80GB HBM3", "NVIDIA H200"):
        desk.cuda(card("9.0", seen))
        assert "seen right" in finding(desk.plan(kv_cache_dtype=K8V4), "turboquant_kernels").message
    desk.venv = replace(desk.venv, version="0.26.0")
    assert "not proven" in finding(desk.plan(kv_cache_dtype=K8V4), "turboquant_kernels").message
    assert "turboquant_kernels" not in {one.id for one in desk.plan(kv_cache_dtype="fp8").findings}


def test_what_a_plan_calls_seen_right_stands_in_the_table_of_proofs() -> None:
    section = (Path(__file__).parents[4] / "docs" / "proof.md").read_text(encoding="utf-8")
    section = section.partition("## Where the kernels for TurboQuant are proven")[2].partition(
        "\n`sndr prove`"
    )[0]
    rows = [
        tuple(cell.strip() for cell in line.split("|")[1:4])
        for line in section.splitlines()
        if "| 0." in line
    ]
    assert {(version, gpu, f"turboquant_{kind}") for gpu, version, kind in rows} == PROVEN


def test_vllms_own_kernels_are_named_where_they_run_and_refused_with_drafts(desk: Desk) -> None:
    desk.patches = left_out(PatchReason.SWITCHED_OFF, "settings: attention is off")
    without = desk.plan(kv_cache_dtype=K8V4)
    assert without.startable
    assert "settings: attention is off" in finding(without, "turboquant_stock").message
    found = refused(desk.plan(kv_cache_dtype=K8V4, speculation="mtp"))
    assert f"the patch {PATCH} is left out: settings: attention is off" in found.message
    assert ways(found) == {"kv_cache_dtype": "fp8"}
    assert found.fix is not None
    assert found.fix.command is not None
    assert "fp8" in found.fix.command
    refused(desk.plan(kv_cache_dtype=K8V4, speculation="ngram"))
    desk.cuda(card("8.6", "NVIDIA GeForce RTX 3090"))
    assert ways(refused(desk.plan(kv_cache_dtype=K8V4, speculation="mtp"))) == {"kv_cache_dtype": "fp8"}
    assert desk.plan(kv_cache_dtype="fp8", speculation="mtp").startable
    desk.cuda(card("7.5", "Tesla T4"))
    found = refused(desk.plan(kv_cache_dtype=K8V4, speculation="mtp"))
    assert ways(found) == {"speculation": "off"}, "such a GPU has no kernel that reads fp8"
    # What the findings offer can be started.
    assert desk.plan(kv_cache_dtype=K8V4, speculation="off").startable


def test_a_type_that_the_kernels_do_not_read_has_a_neighbour_that_they_do(desk: Desk) -> None:
    desk.patches = left_out(PatchReason.WRONG_KV_CACHE, "turboquant_3bit_nc, not turboquant_k8v4")
    found = refused(desk.plan(kv_cache_dtype="turboquant_3bit_nc", speculation="mtp"))
    assert ways(found) == {"kv_cache_dtype": "turboquant_4bit_nc"}


def test_what_the_kernels_were_not_written_for_is_refused_before_a_process_exists(desk: Desk) -> None:
    found = refused(desk.plan(kv_cache_dtype=K8V4, speculation="mtp", draft_tokens=8))
    assert "8 draft tokens are more than 7" in found.message
    assert ways(found) == {"draft_tokens": 7}
    own = '{"method": "mtp", "num_speculative_tokens": 9}'
    assert ways(refused(desk.plan(kv_cache_dtype=K8V4, speculation=own))) == {"kv_cache_dtype": "fp8"}
    wide = desk.plan(kv_cache_dtype=K8V4, speculation="mtp", dtype="float32")
    assert "activations are of 32 bits" in refused(wide).message
    stock = finding(desk.plan(kv_cache_dtype=K8V4, dtype="float32"), "turboquant_stock")
    assert "activations" in stock.message
    desk.folder = checkpoint(desk.home / "odd", tensors(a=(8,)), head_dim=80)
    plan = desk.plan(kv_cache_dtype=K8V4, speculation="ngram")
    assert "heads of 80 are none of 64, 128, 256" in refused(plan).message
    desk.folder = checkpoint(
        desk.home / "many", tensors(a=(8,)), head_dim=64, num_attention_heads=32, num_key_value_heads=1
    )
    plan = desk.plan(kv_cache_dtype=K8V4, speculation="ngram")
    assert "32 query heads a KV head times 4 tokens" in refused(plan).message
    assert desk.plan(kv_cache_dtype=K8V4, speculation="ngram", draft_tokens=1).startable


def test_wrong_answers_can_be_asked_for_by_name(desk: Desk) -> None:
    desk.patches = left_out(PatchReason.LEFT_OUT, "this start is without it")
    asked: dict[str, Any] = {"kv_cache_dtype": K8V4, "speculation": "mtp"}
    plan = desk.plan(**asked, allow_wrong_answers=True)
    assert plan.startable
    assert finding(plan, "turboquant_speculation").severity is Severity.WARNING
    assert plan.environment["SNDR_ALLOW_WRONG_ANSWERS"] == "1"
    desk.patches = PlannedPatches(digest="d", chosen=(PATCH,))
    assert "SNDR_ALLOW_WRONG_ANSWERS" not in desk.plan(**asked).environment


def test_what_was_proven_here_is_said_and_what_failed_here_is_refused(desk: Desk) -> None:
    drafting: dict[str, Any] = {"kv_cache_dtype": K8V4, "speculation": "mtp"}
    desk.cuda(card("8.6", "NVIDIA GeForce RTX 3090"))
    unproven = finding(desk.plan(**drafting), "turboquant_kernels")
    assert unproven.fix is not None
    assert unproven.fix.command == "sndr prove --gpu GPU-0 --installation 0.32.0-cuda"
    assert unproven.fix.action is not None
    assert unproven.fix.action.path == PROVE.path
    asked = ProveKernels.model_validate(unproven.fix.action.body)
    assert (asked.gpu, asked.kv_cache_dtype) == ("GPU-0", K8V4)
    assert "Last time" not in unproven.message
    desk.proof = proof()
    here = finding(desk.plan(**drafting), "turboquant_kernels")
    assert "proven here on 2026-11-2" in here.message
    assert "self-test ok, 40 of 40 answers equal, 1.9 × bf16" in here.message
    desk.proof = proof(stale="the driver was 570.1")
    stale = finding(desk.plan(**drafting), "turboquant_kernels")
    assert "They are not proven on NVIDIA GeForce RTX 3090" in stale.message
    assert "40 of 40 answers equal, 1.9 × bf16, but the driver was 570.1" in stale.message
    desk.proof = proof(verdict=ProofVerdict.WRONG, why="3 of 40 answers with MTP differ")
    found = refused(desk.plan(**drafting))
    assert "3 of 40 answers with MTP differ" in found.message
    assert ways(found) == {"kv_cache_dtype": "fp8"}
    without = desk.plan(kv_cache_dtype=K8V4)
    assert without.startable
    assert finding(without, "turboquant_kernels").severity is Severity.WARNING
    assert desk.plan(**drafting, allow_wrong_answers=True).startable
    desk.cuda(card("9.0", "NVIDIA H200"))
    assert ways(refused(desk.plan(**drafting))) == {"kv_cache_dtype": "fp8"}
    desk.proof = proof(verdict=ProofVerdict.WRONG, why="wrong", stale="the kernels have changed")
    assert desk.plan(**drafting).startable
    desk.proof = proof(verdict=ProofVerdict.UNDECIDED, why="the engine did not start")
    assert "seen right" in finding(desk.plan(**drafting), "turboquant_kernels").message


def test_the_limits_are_those_of_the_kernels() -> None:
    decision, layout = _module("decision"), _module("kernels/layout")
    assert set(KV_TYPES) == set(decision.PRESETS)
    assert (MOST_ROWS, HEAD_SIZES) == (decision.MOST_ROWS, layout.HEAD_SIZES)
    assert decision.ID == PATCH


def _module(name: str) -> ModuleType:
    folder = Path(next(iter(patches.__path__))) / PATCH
    spec = importlib.util.spec_from_file_location(name.replace("/", "_"), folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
