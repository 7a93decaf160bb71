"""Every rule of the advisor: when it speaks, and when it is silent."""

from dataclasses import replace
from typing import Any

import pytest

from engine_host.fit.advisor import AdviceInput, advice
from engine_host.fit.estimate import estimate
from engine_host.fit.parts import GIB
from engine_host.fit.reserve import reserve_words
from engine_host.fit.start import Device, Model, Start
from engine_host.protocol.launch.fit import Advice
from engine_host.protocol.launch.plans import EngineKind
from tests.unit.fit.test_report import CARD, model, start


def advice_ids(read: Model, settings: Start, **more: Any) -> set[str]:
    return {one.id for one in advice(AdviceInput(read, settings, estimate(read, settings), **more))}


TWO: dict[str, Any] = {"devices": (CARD, CARD)}
NARROW: dict[str, Any] = {"devices": (CARD, replace(CARD, pcie_lanes=4))}
QUIET: dict[str, Any] = {"prefix_caching": False}


@pytest.mark.parametrize(
    ("rule", "read", "settings", "silent"),
    [
        (
            "cliff.tool_result",
            model("dense"),
            start(kv="turboquant_3bit_nc", context=65_536),
            start(kv="turboquant_3bit_nc", context=65_536, **TWO),
        ),
        ("cliff.gdn_long_prompt", model("hybrid"), start(context=65_536), start(context=65_536, **TWO)),
        ("cliff.reprefill", model("hybrid"), start(context=32_768), start(context=32_768, **QUIET)),
        (
            "cliff.false_ceiling",
            model("dense", gguf=True),
            start(EngineKind.LLAMA_CPP, context=262_144),
            start(EngineKind.LLAMA_CPP, context=200_000),
        ),
        ("mtp_slows", model("mixture"), start(drafting=True, **TWO), start(drafting=True)),
        ("kv_coarse", model("dense"), start(kv="turboquant_4bit_nc"), start(kv="fp8")),
        (
            "k8v4_keys_clamped",
            model("dense"),
            start(kv="turboquant_k8v4"),
            start(kv="turboquant_k8v4", devices=(replace(CARD, sm="9.0"),)),
        ),
        (
            "prefix_cache_hybrid",
            model("hybrid"),
            start(kv="turboquant_k8v4"),
            start(kv="turboquant_k8v4", **QUIET),
        ),
        ("prefix_states", model("hybrid"), start(drafting=True), start(drafting=True, **QUIET)),
        (
            "prefix_states",
            model("hybrid"),
            start(kv="turboquant_k8v4", drafting=True),
            start(kv="turboquant_k3v4_nc", drafting=True),
        ),
        ("eager", model("dense"), start(eager=True), start()),
        ("pcie_x4", model("dense"), start(**NARROW), start(**TWO)),
        ("power_cap", model("dense"), start(devices=(replace(CARD, power_share=0.6),)), start()),
        (
            "nvfp4_needs_blackwell",
            replace(model("dense"), quantization="NVFP4"),
            start(devices=(replace(CARD, sm="8.9"),)),
            start(devices=(replace(CARD, sm="12.0"),)),
        ),
        (
            "gpu_share_taken",
            model("dense"),
            start(devices=(replace(CARD, taken=6 * GIB),)),
            start(devices=(replace(CARD, taken=GIB),)),
        ),
        ("fp8_with_windows", model("windows"), start(kv="fp8"), start()),
        ("vllm_on_cpu", model("dense"), start(cpu=True, devices=(Device("memory", 64 * GIB),)), start()),
    ],
)
def test_a_rule_speaks_where_it_applies_alone(rule: str, read: Model, settings: Start, silent: Start) -> None:
    assert rule in advice_ids(read, settings)
    assert rule not in advice_ids(read, silent)


def test_a_sampler_that_makes_models_repeat_themselves() -> None:
    assert "min_p" in advice_ids(model("dense"), start(), min_p=0.05)
    assert "min_p" not in advice_ids(model("dense"), start(), min_p=0.0)
    assert "min_p" not in advice_ids(model("dense"), start())


def test_a_drafter_that_is_not_there() -> None:
    assert "drafter_missing" in advice_ids(model("dense"), start(drafting=True), drafting_requested=True)
    assert "drafter_missing" not in advice_ids(model("hybrid"), start(drafting=True), drafting_requested=True)


def test_too_little_is_left_for_the_prefill_of_gated_delta_layers() -> None:
    """The cache fills vLLM's share, so that a large one leaves nothing for what its profile misses."""
    assert "gdn_prefill_oom" not in advice_ids(model("hybrid"), start(gpu_memory=0.9))
    assert "gdn_prefill_oom" in advice_ids(model("hybrid"), start(gpu_memory=0.97))
    assert "gdn_prefill_oom" in advice_ids(model("hybrid"), start(batched_tokens=16_384))
    assert "gdn_prefill_oom" not in advice_ids(model("dense"), start(gpu_memory=0.97))


def test_every_rule_has_a_fix_and_evidence_and_the_gravest_come_first() -> None:
    read, settings = model("hybrid"), start(context=65_536, kv="turboquant_k8v4", drafting=True, eager=True)
    given = advice(AdviceInput(read, settings, estimate(read, settings), 0.1))
    assert len(given) >= 5
    assert all(one.message and one.fix and one.evidence for one in given)
    order = ["error", "warning", "info"]
    assert [order.index(one.severity) for one in given] == sorted(order.index(one.severity) for one in given)


def _advice(settings: Start) -> tuple[Advice, ...]:
    read = model("dense", gguf=True)
    return advice(AdviceInput(read, settings, estimate(read, settings)))


def test_a_finer_kv_type_is_one_of_the_engine_and_one_that_fits() -> None:
    coarse = start(EngineKind.LLAMA_CPP, kv="q4_0", kv_v="q4_0", context=4096)
    (found,) = [one for one in _advice(coarse) if one.id == "kv_coarse"]
    assert found.fix.startswith("Take f16 or q8_0, which fits here")
    full = _advice(replace(coarse, streams=32, context=32_768))
    (found,) = [one for one in full if one.id == "kv_coarse"]
    assert found.fix == "A finer type (f16 or q8_0) has room with a shorter context or fewer streams."


def test_a_card_that_is_named_and_full_has_nothing_for_a_display() -> None:
    read = model("dense", gguf=True)

    def found(settings: Start, *, named: bool = True) -> set[str]:
        facts = AdviceInput(read, settings, estimate(read, settings), named=named)
        return {one.id for one in advice(facts)} & {"display_share"}

    small = start(EngineKind.LLAMA_CPP, context=4096)
    needed = estimate(read, small).needed
    (card,) = small.devices
    full = replace(small, devices=(replace(card, total=needed + 2**29, taken=0),))
    assert found(full) == {"display_share"}
    assert not found(full, named=False)
    assert reserve_words(full, estimate(read, full), named=True) == (
        "Left to others on the fullest GPU: 512.0 MiB; llama.cpp keeps nothing free. Nothing is counted "
        "for a display, the driver and other programs; a desktop takes about 1.0 GiB."
    )
    here = reserve_words(
        replace(full, devices=(replace(card, taken=2**29),)), estimate(read, full), named=False
    )
    assert here.endswith("What others hold now is counted, a display too.")
    vllm = start(context=4096)
    said = reserve_words(vllm, estimate(model("dense"), vllm), named=True)
    assert "vLLM keeps 10 % of the GPU free (gpu_memory)" in said
    assert not found(replace(full, devices=(replace(card, total=needed + 2**30, taken=2**28),)))
    assert not found(replace(full, devices=(replace(card, total=needed + 2**31, taken=0),)))
