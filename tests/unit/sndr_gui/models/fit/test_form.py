"""The question on Fit: what was chosen becomes a request and the command line that asks the same."""

import shlex
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from engine_host.cli.fit import fit
from engine_host.protocol.launch.fit import Change
from engine_host.protocol.launch.plans import EngineKind
from sndr_gui.models.fit.form import FitForm, HardwareSource, ModelSource, change_of

CATALOGUE = FitForm(
    source=ModelSource.CATALOGUE, catalogue="qwen3-8b", variant="bf16", where=HardwareSource.CARD, card="l4"
)
FREE = replace(CATALOGUE, where=HardwareSource.FREE, total=24.0, taken=1.5, bandwidth=936.0, count=2)


def test_only_what_was_set_is_asked() -> None:
    asked = replace(CATALOGUE, count=2, context=65536, kv="fp8", speculation=True).request()
    assert asked.model_dump() == {
        "model": "qwen3-8b/bf16",
        "hardware": "2x l4",
        "context": 65536,
        "kv": "fp8",
        "speculation": True,
        "grid": True,
    }
    preset = FitForm(source=ModelSource.PRESET, preset="demo-llamacpp", engine=EngineKind.VLLM)
    assert preset.request().model_dump() == {"preset": "demo-llamacpp", "grid": True}


def test_free_figures_are_gpus_in_bytes() -> None:
    gpus = FREE.request().gpus
    assert gpus is not None
    assert len(gpus) == 2
    assert (gpus[0].total, gpus[0].taken, gpus[0].bandwidth) == (24 << 30, 3 << 29, 936e9)


@pytest.mark.parametrize(
    ("form", "command"),
    [
        (CATALOGUE, "sndr fit qwen3-8b/bf16 --hardware l4"),
        (replace(CATALOGUE, count=2), "sndr fit qwen3-8b/bf16 --hardware '2x l4'"),
        (replace(CATALOGUE, taken=1.5), "sndr fit qwen3-8b/bf16 --hardware l4 --taken 1.5"),
        (FitForm(model="m", gpu_layers=20, cpu_experts=4), "sndr fit m --gpu-layers 20 --cpu-experts 4"),
        (FitForm(model="m", flash_attention="off"), "sndr fit m --flash-attention off"),
        (FitForm(model="m", replace=True), "sndr fit m --replace"),
        (replace(CATALOGUE, replace=True, variant=""), "sndr fit qwen3-8b --hardware l4"),
        (FREE, "sndr fit qwen3-8b/bf16 --gpu 24:1.5:936 --gpu 24:1.5:936"),
        (replace(FREE, taken=None, bandwidth=None, count=1), "sndr fit qwen3-8b/bf16 --gpu 24"),
        (FitForm(source=ModelSource.PRESET, preset="p", context=128), "sndr fit --preset p --context 128"),
        (FitForm(model="m", where=HardwareSource.CPU, eager=False), "sndr fit m --cpu --no-eager"),
        (FitForm(source=ModelSource.HUB, repository="a/b", pinned="a/b@c"), "sndr fit a/b@c"),
        (FitForm(source=ModelSource.HUB, repository="a/x", pinned="a/b@c"), "sndr fit a/x"),
        (
            FitForm(source=ModelSource.FILE, path="/a b/config.json", bits=4.5),
            "sndr fit '/a b/config.json' --bits 4.5",
        ),
        (FitForm(model="m", tensor_parallel=2, gpu_memory=0.95), "sndr fit m --gpu-memory 0.95 --tp 2"),
        (
            FitForm(model="m", engine=EngineKind.VLLM, batched_tokens=1024),
            "sndr fit m --engine vllm --batched-tokens 1024",
        ),
    ],
)
def test_the_command_line_asks_the_same(form: FitForm, command: str) -> None:
    assert form.command() == command
    assert form.missing == ""
    # The command line knows every option: with another one it would fail before it looks for a host.
    done = CliRunner().invoke(fit, [*shlex.split(command)[2:], "--help"])
    assert done.exit_code == 0


@pytest.mark.parametrize(
    ("form", "says"),
    [
        (FitForm(), "Choose a model."),
        (FitForm(source=ModelSource.PRESET), "Choose a preset."),
        (FitForm(source=ModelSource.FILE, path="  "), "Enter the path"),
        (FitForm(source=ModelSource.HUB), "Hugging Face"),
        (FitForm(model="m", where=HardwareSource.CARD), "Choose a GPU."),
        (FitForm(model="m", where=HardwareSource.FREE, total=None), "how much memory"),
    ],
)
def test_what_is_missing_is_said(form: FitForm, says: str) -> None:
    assert says in form.missing


@pytest.mark.parametrize(
    ("asks", "values"),
    [
        ({"kv": "fp8"}, {"kv": "fp8"}),
        ({"gpu_memory": 0.95}, {"gpu_memory": 0.95}),
        ({"context": 10752}, {"context": 10752}),
        ({"batched_tokens": 1024}, {"batched_tokens": 1024}),
        ({"eager": True}, {"eager": True}),
        ({"speculation": False}, {"speculation": False}),
        ({"kv_cache_gib": 2}, {"kv_cache_gib": 2}),
        (
            {"model": "qwen3-8b/q4-k-m"},
            {
                "source": ModelSource.CATALOGUE,
                "catalogue": "qwen3-8b",
                "variant": "q4-k-m",
                "engine": EngineKind.AUTO,
            },
        ),
        # The form has no field for it.
        ({"min_p": 0.1}, None),
        ({}, None),
    ],
)
def test_changes_become_values_of_the_form(asks: dict[str, Any], values: object) -> None:
    change = Change(id="some", text="", saves=1, fits=True, asks=asks)
    assert change_of(change, CATALOGUE) == values


def test_settings_are_named_as_a_preset_of_that_engine_has_them() -> None:
    form = replace(CATALOGUE, context=4096, kv="fp8", speculation=False, eager=True)
    vllm = {"context": 4096, "eager": True, "kv_cache_dtype": "fp8", "speculation": "off"}
    assert form.settings(EngineKind.VLLM) == vllm
    assert replace(CATALOGUE, kv="q8_0").settings(EngineKind.LLAMA_CPP) == {
        "kv_type_k": "q8_0",
        "kv_type_v": "q8_0",
    }
    assert CATALOGUE.settings(EngineKind.VLLM) == {}


def test_more_gpus_than_this_machine_has_are_no_change_of_the_form() -> None:
    change = Change(id="gpus", text="", saves=1, fits=True, gpus=2)
    assert change_of(change, FitForm(model="m")) is None
    assert change_of(change, CATALOGUE) == {"count": 2, "tensor_parallel": None}
    assert change_of(change.model_copy(update={"gpus": 16}), CATALOGUE) is None
