"""What is told before a start of vLLM, and what stops it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from engine_host.protocol.base import Severity
from engine_host.protocol.errors import Reason
from engine_host.protocol.launch.plans import (
    Layer,
)
from engine_host.protocol.patches import PlannedPatches
from tests.unit.launch.vllm_desk import GIB, Desk, after, finding, gpu, settings
from tests.unit.library.checkpoints import checkpoint, tensors


@pytest.fixture
def desk(home: Path) -> Desk:
    return Desk(home)


def test_drafting_on_a_hybrid_without_a_gpu_goes_without_prefix_caching(desk: Desk) -> None:
    offered = finding(desk.plan(streams=2), "mtp_available")
    assert offered.severity is Severity.INFO
    assert offered.fix is not None
    assert offered.fix.settings == {"speculation": "mtp"}
    assert offered.fix.command == "sndr run m --streams 2 --speculation mtp", "the same start, with it"
    plan = desk.plan(speculation="mtp", draft_tokens=2)
    assert "--no-enable-prefix-caching" in plan.argv
    assert json.loads(after(plan, "--speculative-config")) == {"method": "mtp", "num_speculative_tokens": 2}
    assert finding(plan, "prefix_caching_off").severity is Severity.INFO
    assert desk.facts[-1].speculation == "mtp"
    forced = desk.plan(speculation="mtp", prefix_caching=True)
    assert "--enable-prefix-caching" in forced.argv
    assert finding(forced, "prefix_caching_breaks").severity is Severity.WARNING
    assert settings(desk.plan(speculation="ngram"))["prefix_caching"].value is None
    desk.cuda(gpu(0))
    assert settings(desk.plan(speculation="mtp"))["prefix_caching"].value is None


def test_sampled_answers_with_speculation_need_a_patch_on_the_processor(desk: Desk) -> None:
    warned = finding(desk.plan(speculation="ngram"), "speculation_samples_noise")
    assert warned.severity is Severity.WARNING
    desk.patches = PlannedPatches(digest="d", chosen=("cpu-speculation-sampling",))
    assert "speculation_samples_noise" not in {one.id for one in desk.plan(speculation="ngram").findings}
    desk.patches = PlannedPatches(digest="d", chosen=())
    assert "speculation_samples_noise" not in {one.id for one in desk.plan().findings}
    desk.cuda(gpu(0))
    assert "speculation_samples_noise" not in {one.id for one in desk.plan(speculation="ngram").findings}


def test_turboquant_on_a_hybrid_needs_a_patch_in_0_26(desk: Desk) -> None:
    desk.cuda(gpu(0))
    desk.venv = replace(desk.venv, id="0.26.0-cuda", version="0.26.0")
    desk.patches = PlannedPatches(digest="d", chosen=())
    plan = desk.plan(kv_cache_dtype="turboquant_k8v4")
    assert finding(plan, "turboquant_hybrid").reason is Reason.KV_TYPE_UNSUPPORTED
    assert not plan.startable
    assert "turboquant_hybrid" not in {one.id for one in desk.plan(kv_cache_dtype="fp8").findings}
    desk.patches = PlannedPatches(digest="d", chosen=("turboquant-hybrid-cache-shape",))
    found = {one.id for one in desk.plan(kv_cache_dtype="turboquant_k8v4").findings}
    assert "turboquant_hybrid" not in found


def test_batch_invariant_mode_is_refused_where_vllm_refuses_it(desk: Desk) -> None:
    desk.cuda(gpu(0))
    plan = desk.plan(batch_invariant=True)
    found = finding(plan, "invariance_of_hybrid")
    assert found.reason is Reason.UNSUPPORTED
    assert found.fix is not None
    assert found.fix.settings == {"batch_invariant": False}
    assert not plan.startable
    desk.folder = checkpoint(desk.home / "dense", tensors(a=(8,)))
    assert desk.plan(batch_invariant=True).startable
    desk.patches = PlannedPatches(digest="d", chosen=())
    plan = desk.plan(batch_invariant=True, kv_cache_dtype="turboquant_k8v4")
    assert finding(plan, "invariance_of_turboquant").reason is Reason.UNSUPPORTED
    desk.patches = PlannedPatches(digest="d", chosen=("turboquant-grouped-attention",))
    plan = desk.plan(batch_invariant=True, kv_cache_dtype="turboquant_k8v4")
    assert "invariance_of_turboquant" not in {one.id for one in plan.findings}


def test_drafting_without_a_layer_for_it_stops_the_start(desk: Desk) -> None:
    checkpoint(desk.folder, tensors(a=(8,)))
    plan = desk.plan(speculation="mtp")
    assert (finding(plan, "no_mtp_layer").reason, plan.startable) == (Reason.UNSUPPORTED, False)


def test_memory_that_is_short_is_told_and_what_the_machine_lacks_stops_the_start(desk: Desk) -> None:
    desk.free = 2 * GIB
    assert finding(desk.plan(), "memory_short").severity is Severity.WARNING
    assert finding(desk.plan(kv_cache_gib=200), "memory_short").severity is Severity.ERROR


def test_a_context_beyond_the_models_positions_stops_the_start(desk: Desk) -> None:
    plan = desk.plan(context=8192)
    assert (finding(plan, "context_beyond_training").reason, plan.startable) == (
        Reason.CONTEXT_TOO_LONG,
        False,
    )
    stretched = {"rope_type": "yarn", "factor": 4.0}
    checkpoint(desk.folder, tensors(a=(8,)), rope_scaling=stretched)
    assert desk.plan(context=8192).startable


def test_gpus(desk: Desk) -> None:
    desk.cuda()
    missing = finding(desk.plan(), "no_gpu")
    assert missing.reason is Reason.ENGINE_UNUSABLE
    assert missing.fix is not None
    assert missing.fix.action is not None
    assert missing.fix.action.path == "/v1/installations/0.32.0-cpu"
    desk.cuda(gpu(0, used=100 * GIB), gpu(1), gpu(2))
    plan = desk.plan()
    assert "--enforce-eager" not in plan.argv
    assert plan.environment["CUDA_VISIBLE_DEVICES"] == "1", "the freest"
    assert after(plan, "--gpu-memory-utilization") == "0.9"
    assert plan.streams == 16
    assert desk.facts[-1].sm == ("9.0",)
    everything = desk.plan(tensor_parallel=3)
    assert "CUDA_VISIBLE_DEVICES" not in everything.environment
    assert after(everything, "--tensor-parallel-size") == "3"
    share = settings(everything)["gpu_memory"]
    assert (share.value, share.layer) == (0.26, Layer.HARDWARE)
    assert not desk.plan(tensor_parallel=4).startable
    assert finding(desk.plan(tensor_parallel=4), "too_few_gpus").reason is Reason.SETTING_INVALID


def test_weights_that_do_not_fit_a_gpu_stop_the_start(desk: Desk) -> None:
    (desk.folder / "model.safetensors").unlink()
    checkpoint(
        desk.folder, hidden_size=8192, num_hidden_layers=100, intermediate_size=32768, num_attention_heads=64
    )
    desk.cuda(gpu(0), gpu(1))
    assert finding(desk.plan(), "vram_short").severity is Severity.ERROR
    assert desk.plan(tensor_parallel=2).startable
