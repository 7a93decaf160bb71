"""The steps of the sliders, the question that they ask, and what a change of fit sets."""

from itertools import pairwise
from typing import Any

import pytest

from engine_host.protocol.catalog import PresetEngine
from engine_host.protocol.launch.fit import Change
from engine_host.protocol.launch.plans import EngineKind, ServerChoice
from engine_host.protocol.patches import PlannedPatches
from sndr_gui.models.launch.form import Form
from sndr_gui.models.launch.sizes import MOST_STREAMS, change_values, context_steps, fit_request, stream_steps
from sndr_gui.models.launch.subject import of_model, of_preset
from tests.views.samples import host as samples
from tests.views.samples import presets as preset_samples

LLAMA, VLLM = EngineKind.LLAMA_CPP, EngineKind.VLLM


def test_contexts_grow_by_eighths_of_a_doubling_up_to_the_longest() -> None:
    steps = context_steps(32_768)
    assert steps[0] == 1024
    assert steps[-1] == 32_768
    assert {1152, 2048, 4096, 30_720} <= set(steps)
    assert all(before < after <= before * 1.126 for before, after in pairwise(steps))


def test_what_is_set_and_what_has_room_are_steps_of_their_own() -> None:
    steps = context_steps(40_960, 5000, 33_333, None)
    assert {5000, 33_333, 40_960} <= set(steps)
    assert max(context_steps(8192, 17_920)) == 8192, "no context that the model was not trained for"
    assert max(context_steps(None, 200_000)) == 200_000


def test_streams_go_up_to_the_most_that_can_be_asked_for() -> None:
    assert stream_steps()[:4] == (1, 2, 3, 4)
    assert stream_steps(9, 2612, None)[-1] == MOST_STREAMS
    assert 9 in stream_steps(9)


def test_a_model_asks_with_what_its_plan_says_and_what_was_set() -> None:
    subject = of_model(samples.model("m"))
    form = Form(values={"streams": 2, "speculation": "draft-mtp", "draft_tokens": 4})
    asked = fit_request(subject, form, "", samples.plan())
    assert asked.model_dump(exclude_unset=True, exclude_none=True) == {
        "model": "m",
        "server": ServerChoice.PREBUILT,
        "context": 8192,
        "streams": 2,
        "kv": "f16",
        "draft_tokens": 4,
        "speculation": True,
    }


def test_a_preset_names_only_what_was_set() -> None:
    subject = of_preset(preset_samples.item("big-24"))
    form = Form(values={"kv_cache_dtype": "fp8", "eager": False})
    asked = fit_request(subject, form, "cuda", samples.vllm_plan())
    of_patches = {"spared_layers": True, "eight_bit_head": False, "grouped_attention": False}
    assert (
        asked.model_dump(exclude_unset=True) == {"preset": "big-24", "kv": "fp8", "eager": False} | of_patches
    )


def test_a_checkpoint_on_the_processor_says_so() -> None:
    subject = of_model(samples.model("m", format="safetensors"))
    assert fit_request(subject, Form(), "cpu", samples.vllm_plan()).cpu
    assert not fit_request(subject, Form(), "cuda", None).cpu


def test_patches_that_change_what_a_start_takes_are_told() -> None:
    subject = of_model(samples.model("m", format="safetensors"))
    plan = samples.vllm_plan()
    plain = fit_request(subject, Form(), "cuda", plan)
    assert plain.spared_layers
    assert not plain.eight_bit_head
    patches = PlannedPatches(digest="0", chosen=("turboquant-boundary-layers", "draft-head-8-bit"))
    asked = fit_request(subject, Form(), "cuda", plan.model_copy(update={"patches": patches}))
    assert not asked.spared_layers
    assert asked.eight_bit_head


def change(name: str, **asks: Any) -> Change:
    return Change(id=name, text="…", saves=1, fits=True, asks=asks)


@pytest.mark.parametrize(
    ("wanted", "engine", "values"),
    [
        (change("context", context=8192), LLAMA, {"context": 8192}),
        (change("streams", streams=2), VLLM, {"streams": 2}),
        (change("kv:fp8", kv="fp8"), VLLM, {"kv_cache_dtype": "fp8"}),
        (change("kv:q8_0", kv="q8_0"), LLAMA, {"kv_type_k": "q8_0", "kv_type_v": "q8_0"}),
        (change("gpu_memory", gpu_memory=0.95), VLLM, {"gpu_memory": 0.95}),
        (change("kv_cache", kv_cache_gib=1), VLLM, {"kv_cache_gib": 1}),
        (change("batched_tokens", batched_tokens=1024), VLLM, {"batched_tokens": 1024}),
        (change("eager", eager=True), VLLM, {"eager": True}),
        (change("drafting", speculation=False), VLLM, {"speculation": "off"}),
        (change("drafting", speculation=False), LLAMA, {"speculation": "off"}),
        (change("gpus"), VLLM, None),
        (change("of a newer host", of_a_newer_host=1), LLAMA, None),
    ],
)
def test_a_change_sets_what_the_engine_calls_it(
    wanted: Change, engine: EngineKind, values: dict[str, object] | None
) -> None:
    assert change_values(wanted, engine) == values


def test_a_preset_that_this_program_does_not_start_says_so() -> None:
    subject = of_preset(preset_samples.item("s", engine=PresetEngine.SGLANG, startable=False))
    assert subject.problem is not None
    assert "SGLang" in subject.problem.message
    assert subject.command == "sndr launch s --render docker"


def test_a_preset_drafts_when_its_model_and_its_weights_can() -> None:
    item, model = preset_samples.item("big-24"), preset_samples.model()
    assert of_preset(item, model).drafts
    assert of_preset(item, model).longest == 262_144
    without = model.variants[0].model_copy(update={"mtp": False})
    assert not of_preset(item, model.model_copy(update={"variants": (without,)})).drafts
