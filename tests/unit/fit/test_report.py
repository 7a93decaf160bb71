"""The whole answer: it is monotone, never negative, inverts itself, and says why something cannot run."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_host.core.errors import HostError
from engine_host.fit.estimate import blocker, estimate, holds, largest_context, most_streams
from engine_host.fit.parts import GIB, Basis
from engine_host.fit.report import kv_token_bytes, report, start_of
from engine_host.fit.shapes.read import model_of, model_of_config
from engine_host.fit.start import Device, Model, Start
from engine_host.library.checkpoint import read_checkpoint
from engine_host.protocol.errors import Reason
from engine_host.protocol.launch.fit import FitReport, FitRequest, PartSource, Verdict
from engine_host.protocol.launch.plans import EngineKind
from tests.unit.fit.test_kv import DENSE, HYBRID
from tests.unit.fit.test_llamacpp import demo_gguf

CARD = Device("card", 24 * GIB, sm="8.6", bandwidth=936.2e9)
MIXTURE: dict[str, Any] = {
    **DENSE,
    "num_hidden_layers": 48,
    "hidden_size": 2048,
    "num_key_value_heads": 4,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 768,
}
LATENT: dict[str, Any] = {**DENSE, "kv_lora_rank": 512, "qk_rope_head_dim": 64}
WINDOWS: dict[str, Any] = {
    **DENSE,
    "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 6,
    "sliding_window": 1024,
}
SHAPES = {"dense": DENSE, "hybrid": HYBRID, "mixture": MIXTURE, "latent": LATENT, "windows": WINDOWS}


def model(shape: str, *, gguf: bool = False) -> Model:
    return model_of_config(SHAPES[shape], shape, gguf=gguf, context=262_144, bits=4.5)


def start(engine: EngineKind = EngineKind.VLLM, **values: Any) -> Start:
    auto = "auto" if engine is EngineKind.VLLM else "f16"
    return replace(Start(engine, (CARD,), cpu=False, context=8192, kv=auto, kv_v=auto), **values)


ENGINES = st.sampled_from([EngineKind.VLLM, EngineKind.LLAMA_CPP])
NAMES = st.sampled_from(sorted(SHAPES))
CONTEXTS = st.integers(1, 262_144)
STREAMS = st.integers(1, 64)


@settings(max_examples=120)
@given(ENGINES, NAMES, CONTEXTS, STREAMS, st.integers(0, 100_000), st.integers(0, 32), st.booleans())
def test_more_is_never_less(
    engine: EngineKind, name: str, context: int, streams: int, longer: int, more: int, drafting: bool
) -> None:
    read = model(name, gguf=engine is EngineKind.LLAMA_CPP)
    launch = start(engine, context=context, streams=streams, drafting=drafting)
    here = estimate(read, launch)
    assert all(0 <= part.low <= part.bytes <= part.high for part in here.parts)
    assert 0 < here.kv_one <= here.kv
    assert here.budget >= 0
    assert estimate(read, replace(launch, context=context + longer)).needed >= here.needed
    assert estimate(read, replace(launch, streams=streams + more)).needed >= here.needed


@settings(max_examples=60)
@given(NAMES, CONTEXTS, STREAMS, st.sampled_from(["fp8", "turboquant_k8v4", "turboquant_4bit_nc"]))
def test_coarser_is_never_more(name: str, context: int, streams: int, kind: str) -> None:
    read, launch = model(name), start(context=context, streams=streams)
    coarse = replace(launch, kv=kind)
    if blocker(read, coarse) is None:
        assert kv_token_bytes(read.shape, coarse) <= kv_token_bytes(read.shape, launch)


@settings(max_examples=60)
@given(ENGINES, NAMES, st.floats(2, 16), st.floats(0, 8), CONTEXTS)
def test_more_bits_a_weight_are_never_less(
    engine: EngineKind, name: str, bits: float, more: float, context: int
) -> None:
    gguf = engine is EngineKind.LLAMA_CPP
    launch = start(engine, context=context)
    coarse, fine = (
        estimate(model_of_config(SHAPES[name], name, gguf=gguf, bits=each), launch)
        for each in (bits, bits + more)
    )
    assert fine.needed >= coarse.needed
    assert fine.kv_budget <= coarse.kv_budget


@settings(max_examples=60)
@given(NAMES, st.integers(1, 64), st.integers(0, 8192), st.booleans(), st.sampled_from(["0.26.0", "0.32.0"]))
def test_larger_steps_and_graphs_never_leave_more(
    name: str, streams: int, more: int, eager: bool, version: str
) -> None:
    read, launch = model(name), start(streams=streams, eager=eager, version=version)
    room = estimate(read, launch).kv_budget
    assert 0 <= estimate(read, replace(launch, batched_tokens=launch.batched_tokens + more)).kv_budget <= room
    assert estimate(read, replace(launch, eager=True)).kv_budget >= room


@settings(max_examples=60)
@given(NAMES, st.sampled_from([2, 4, 8]))
def test_shares_of_gpus_sum_to_the_whole(name: str, gpus: int) -> None:
    read = model(name)
    whole = read.weights.loaded(drafting=False)
    shared = estimate(read, start(devices=(CARD,) * gpus))
    weights = next(part for part in shared.parts if part.name == "weights")
    assert whole <= weights.bytes * gpus < whole + gpus
    # Heads are shared, and kept several times where there are more GPUs than heads.
    one, each = (kv_token_bytes(read.shape, start(devices=(CARD,) * count)) for count in (1, gpus))
    assert each * gpus >= one
    if read.shape.latent is None and read.shape.kv_heads % gpus == 0:
        assert each * gpus == one


@settings(max_examples=40)
@given(ENGINES, NAMES, st.integers(1, 32))
def test_the_bounds_are_where_it_stops_to_fit(engine: EngineKind, name: str, streams: int) -> None:
    read = model(name, gguf=engine is EngineKind.LLAMA_CPP)
    launch = start(engine, streams=streams)
    longest = largest_context(read, launch)
    if longest:
        assert holds(estimate(read, replace(launch, context=longest)))
    if longest < 262_144:
        assert not holds(estimate(read, replace(launch, context=longest + 1)))
    most = most_streams(read, launch)
    assert not most or holds(estimate(read, replace(launch, streams=most)))
    assert not holds(estimate(read, replace(launch, streams=most + 1)))


def test_what_others_hold_is_not_there() -> None:
    read = model("dense")
    beside = start(devices=(replace(CARD, taken=8 * GIB),))
    assert largest_context(read, beside) < largest_context(read, start())
    assert estimate(read, beside).budget == 16 * GIB


@pytest.mark.parametrize(
    ("read", "launch", "reason"),
    [
        (model("dense"), start(EngineKind.LLAMA_CPP), Reason.UNSUPPORTED),
        (model("dense", gguf=True), start(), Reason.UNSUPPORTED),
        (model("dense"), start(devices=()), Reason.ENGINE_UNUSABLE),
        (model("dense"), start(context=300_000), Reason.CONTEXT_TOO_LONG),
        (model("dense"), start(devices=(CARD,) * 3), Reason.SETTING_INVALID),
        (model("dense"), start(kv="turboquant_k8v4", cpu=True), Reason.KV_CACHE_UNSAFE),
        (model("latent"), start(kv="turboquant_k8v4"), Reason.KV_TYPE_UNSUPPORTED),
        (model("windows"), start(kv="turboquant_k8v4"), Reason.KV_TYPE_UNSUPPORTED),
    ],
)
def test_what_cannot_run_says_why(read: Model, launch: Start, reason: Reason) -> None:
    stopped = blocker(read, launch)
    assert stopped is not None
    assert stopped.reason is reason
    answer = report(FitRequest(model="x"), read, launch)
    assert (answer.verdict, answer.reason) == (Verdict.CANNOT_RUN, reason)


@pytest.mark.parametrize(("short", "said"), [(5 << 20, "5.0 MiB"), (3 * GIB // 2, "1.5 GiB"), (700, "700 B")])
def test_what_is_missing_is_said_in_its_own_unit(short: int, said: str) -> None:
    read, launch = model("dense", gguf=True), start(EngineKind.LLAMA_CPP)
    needed = estimate(read, launch).needed
    found = estimate(read, replace(launch, devices=(replace(CARD, total=needed - short),)))
    assert (found.verdict, found.why) == (Verdict.DOES_NOT_FIT, f"{said} are missing.")


def test_changes_come_cheapest_first_and_one_of_them_fits() -> None:
    read, launch = model("dense"), start(context=131_072, streams=4, devices=(replace(CARD, taken=4 * GIB),))
    answer = report(FitRequest(model="x"), read, launch)
    enough = [change.fits for change in answer.changes]
    assert enough == sorted(enough, reverse=True), "first what is enough alone"
    order = [
        "free_memory",
        "gpu_memory",
        "batched_tokens",
        "kv:fp8",
        "kv:turboquant_k8v4",
        "streams",
        "context",
    ]
    for fits in (True, False):
        ids = [change.id for change in answer.changes if change.fits is fits]
        assert [name for name in order if name in ids] == [name for name in ids if name in order]
        assert "gpus" not in ids[:-1]
    assert any(enough)
    assert all(change.saves > 0 for change in answer.changes)


# recipes.md A4: Qwen3.6-27B (16 attention layers, 4 KV heads of 256) and 35B-A3B (10, 2 KV heads).
PUBLISHED: list[tuple[EngineKind, str, int, int, float]] = [
    (EngineKind.VLLM, "auto", 65_536, 20_480, 0),
    (EngineKind.VLLM, "fp8", 32_768, 10_240, 0),
    # Its 1.01 bytes are for heads of any size; 8 bytes of scales a token and head are 1.0156 here.
    (EngineKind.VLLM, "int8_per_token_head", 33_096, 10_342, 0.006),
    # 0.75 bytes an element there; vLLM's slots of 388 bytes hold 4 bytes of scales.
    (EngineKind.VLLM, "turboquant_k8v4", 24_576, 7_680, 0.0105),
    # 0.425 bytes "with overhead" there; vLLM's slots of 198 bytes are 0.387.
    (EngineKind.VLLM, "turboquant_3bit_nc", 13_927, 4_352, 0.091),
    (EngineKind.LLAMA_CPP, "f16", 65_536, 20_480, 0),
    (EngineKind.LLAMA_CPP, "q4_0", 18_432, 5_760, 0),
]


@pytest.mark.parametrize(("engine", "kind", "hybrid", "mixture", "within"), PUBLISHED)
def test_bytes_of_a_token_are_those_that_are_published(
    engine: EngineKind, kind: str, hybrid: int, mixture: int, within: float
) -> None:
    launch = start(engine, kv=kind, kv_v=kind)
    small = {**HYBRID, "num_hidden_layers": 40, "num_key_value_heads": 2, "num_attention_heads": 16}
    for config, published in ((HYBRID, hybrid), (small, mixture)):
        shape = model_of_config(config, "x", gguf=engine is EngineKind.LLAMA_CPP).shape
        assert kv_token_bytes(shape, launch) == pytest.approx(published, rel=within, abs=0)


def test_a_dense_model_keeps_four_layers_native_with_turboquant() -> None:
    assert kv_token_bytes(model("dense").shape, start(kv="turboquant_k8v4")) == 8 * (32 * 196 + 4 * 512)


def test_a_patch_quantises_these_layers_too() -> None:
    launch = start(kv="turboquant_k8v4", spared_layers=False)
    assert kv_token_bytes(model("dense").shape, launch) == 8 * 36 * 196


def test_the_answer_is_whole_and_small() -> None:
    request = FitRequest(model="x", streams=2, context=32_768, speculation=True, grid=True)
    read = model("hybrid")
    answer = report(request, read, start_of(request, read, [CARD, CARD], cpu=False))
    assert (answer.engine, answer.tensor_parallel, len(answer.devices)) == (EngineKind.VLLM, 2, 2)
    assert answer.devices[0].needed == sum(part.size for part in answer.devices[0].parts)
    assert {choice.kv for choice in answer.kv_choices} >= {"auto", "fp8", "turboquant_k8v4"}
    assert [point.context for point in answer.curve] == sorted(point.context for point in answer.curve)
    assert len(answer.grid) == len({(cell.context, cell.streams) for cell in answer.grid})
    assert answer.roofline is not None
    assert answer.roofline.decode is not None
    assert len(answer.model_dump_json()) < 60_000


def test_patches_that_are_on_by_default_are_counted_unless_it_is_said_otherwise() -> None:
    read, hopper = model("hybrid"), replace(CARD, sm="9.0")
    asked = FitRequest(model="x", speculation=True)
    assert start_of(asked, read, [hopper], cpu=False).eight_bit_head
    assert not start_of(asked, read, [hopper, replace(CARD, sm="8.6")], cpu=False).eight_bit_head
    assert not start_of(FitRequest(model="x"), read, [hopper], cpu=False).eight_bit_head
    assert start_of(asked, read, [hopper], cpu=False).grouped_attention
    assert not start_of(asked, read, [replace(CARD, sm="7.5")], cpu=False).grouped_attention
    without = asked.model_copy(update={"eight_bit_head": False})
    assert not start_of(without, read, [hopper], cpu=False).eight_bit_head


def test_the_demo_model_on_a_processor() -> None:
    request = FitRequest(model="x", context=2048, streams=2)
    read = demo_gguf()
    answer = report(request, read, start_of(request, read, [Device("memory", 8 * GIB)], cpu=True))
    assert answer.verdict is Verdict.FITS
    assert {part.source for part in answer.devices[0].parts} == {
        PartSource.FILES,
        PartSource.FORMULA,
        PartSource.ESTIMATE,
    }
    assert answer.largest_context == 8192


def on_a_processor(**launch: Any) -> FitReport:
    request = FitRequest(model="x", engine=EngineKind.VLLM, **launch)
    read, memory = model("dense"), Device("memory", 24 * GIB, taken=2 * GIB)
    read = replace(read, weights=replace(read.weights, body=GIB, embedding=0, head=0))
    return report(request, read, start_of(request, read, [memory], cpu=True))


def cache_of(answer: FitReport) -> int:
    return next(part.size for part in answer.devices[0].parts if part.name.startswith("KV cache"))


def test_on_a_processor_vllm_takes_the_whole_cache_that_it_is_given() -> None:
    answer = on_a_processor(context=2048, kv_cache_gib=8)
    assert (cache_of(answer), answer.verdict) == (8 * GIB, Verdict.FITS)
    assert answer.devices[0].needed == sum(part.size for part in answer.devices[0].parts)
    assert cache_of(on_a_processor(context=2048, kv_cache_gib=2.7)) == 2 * GIB, "it takes whole GiB there"
    assert cache_of(on_a_processor(context=128)) == GIB, "at least one, where nobody says how much"
    assert cache_of(on_a_processor(context=262_144)) == 4 * GIB, "and never more than four"


def test_a_cache_that_is_too_large_says_what_is_missing_and_which_one_fits() -> None:
    answer = on_a_processor(context=2048, kv_cache_gib=40)
    device = answer.devices[0]
    assert (answer.verdict, cache_of(answer)) == (Verdict.DOES_NOT_FIT, 40 * GIB)
    assert answer.why == f"{(device.needed - device.room) / GIB:.1f} GiB are missing."
    change = next(change for change in answer.changes if change.fits)
    assert (change.id, change.option) == ("kv_cache", "--kv-cache-gib 1")
    assert on_a_processor(context=2048, kv_cache_gib=1).verdict is Verdict.FITS


def test_a_cache_that_is_too_small_is_made_larger() -> None:
    answer = on_a_processor(context=65_536, kv_cache_gib=1)
    assert answer.verdict is Verdict.DOES_NOT_FIT
    change = next(change for change in answer.changes if change.id == "kv_cache")
    assert change.fits
    larger = float(change.option.split()[1])
    assert on_a_processor(context=65_536, kv_cache_gib=larger).verdict is Verdict.FITS


def test_the_longest_context_is_the_one_that_is_advised() -> None:
    launch = start(context=262_144, streams=4, drafting=True, devices=(CARD, CARD))
    answer = report(FitRequest(model="x", speculation=True), model("hybrid"), launch)
    options = {change.id: change.option for change in answer.changes}
    assert options["context"] == f"--context {answer.largest_context}"
    assert options.get("drafting", "--no-speculation") == "--no-speculation"


def test_beyond_what_a_model_was_trained_for_only_a_shorter_context_is_enough() -> None:
    read = replace(model("dense", gguf=True), context=8192)
    launch = start(EngineKind.LLAMA_CPP, context=999_999, streams=16, kv="q4_0", kv_v="q4_0")
    answer = report(FitRequest(model="x"), read, launch)
    assert (answer.most_streams, [change.id for change in answer.changes if change.fits]) == (0, ["context"])
    assert "streams" not in {change.id for change in answer.changes}
    assert "context_beyond_training" in {one.id for one in answer.advice}


def test_llamacpp_gives_a_stream_no_more_than_a_model_was_trained_for() -> None:
    read = replace(model("dense", gguf=True), context=8192)
    launch = start(EngineKind.LLAMA_CPP, context=8192, kv="f16", kv_v="f16", devices=(CARD, CARD))
    assert report(FitRequest(model="x"), read, launch).verdict is Verdict.FITS
    answer = report(FitRequest(model="x"), read, replace(launch, context=131_072))
    assert (answer.verdict, answer.reason) == (Verdict.CANNOT_RUN, Reason.CONTEXT_TOO_LONG)
    assert "trained for 8,192 tokens" in answer.why
    assert (answer.largest_context, bool(answer.devices)) == (8192, True), (
        "what it takes is told all the same"
    )
    assert {choice.verdict for choice in answer.kv_choices} == {Verdict.CANNOT_RUN}


def test_one_stream_has_room_and_two_have_it() -> None:
    read = model("dense")
    words = {
        estimate(read, start(context=context, streams=8)).why.split(" streams ")[-1]
        for context in range(8192, 131_072, 4096)
    }
    assert {"has room at a time.", "have room at a time."} <= words


def test_sizes_that_are_only_told_are_not_said_to_be_read() -> None:
    for basis, source in ((Basis.CATALOGUE, PartSource.CATALOGUE), (Basis.HUB, PartSource.HUB)):
        for gguf in (True, False):
            read = model_of_config(DENSE, "x", gguf=gguf, size=8 * GIB, basis=basis)
            for cpu in (True, False):
                request = FitRequest(model="x")
                answer = report(request, read, start_of(request, read, [CARD], cpu=cpu))
                weights = answer.devices[0].parts[0]
                assert (weights.name, weights.source) == ("weights", source)
                assert weights.low < weights.size, "files hold more than tensors"
                assert "read" in weights.note


def test_what_was_measured_replaces_an_estimate() -> None:
    read = model("dense")
    plain, learnt = estimate(read, start()), estimate(read, start(), {"CUDA graphs": 1.5})
    before, after = (
        next(part for part in found.parts if part.name == "CUDA graphs") for found in (plain, learnt)
    )
    assert after.bytes == round(1.5 * before.bytes)
    assert after.basis is Basis.MEASURED
    assert after.high - after.low < before.high - before.low


def test_a_checkpoint_is_read_by_its_tensors(tmp_path: Any) -> None:
    from engine_host.core.package_data import resources

    folder = resources() / "models" / "sndr-demo"
    read = model_of(read_checkpoint(folder), "demo")
    assert read.weights.basis is Basis.FILES
    assert read.shape.mtp_layers == 1
    (tmp_path / "config.json").write_text(json.dumps(DENSE | {"architectures": ["X"], "model_type": "x"}))
    assert model_of(read_checkpoint(tmp_path), "shape").weights.basis is Basis.FORMULA


def test_a_kv_type_of_unknown_size_is_refused() -> None:
    with pytest.raises(HostError, match="nvfp4"):
        estimate(model("dense"), start(kv="nvfp4"))


def test_a_finer_cache_holds_less_and_a_coarser_one_more() -> None:
    read = model("dense")
    kinds = ("auto", "fp8", "turboquant_k8v4", "turboquant_4bit_nc")
    found = [largest_context(read, start(kv=kind, streams=4)) for kind in kinds]
    assert found == sorted(found)
    assert found[1] == pytest.approx(2 * found[0], rel=0.02)
    # Four of the 36 layers stay as they are.
    assert found[2] == pytest.approx(36 * 512 / (32 * 196 + 4 * 512) * found[0], rel=0.02)
