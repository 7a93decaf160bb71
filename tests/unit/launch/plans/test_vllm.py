"""Plans for vLLM: which engine runs what, settings with their reasons, and patches."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine_host.core.errors import HostError
from engine_host.launch.equivalent_command import equivalent_command
from engine_host.protocol.base import Severity
from engine_host.protocol.catalog import PresetEngine
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.errors import Reason
from engine_host.protocol.launch.plans import EngineKind, LaunchRequest, Layer, ServerChoice
from engine_host.protocol.patches import PatchChoice, PlannedPatches
from tests.shipped_catalog import shipped
from tests.unit.asynchronous import run
from tests.unit.launch.vllm_desk import GIB, Desk, after, finding, gpu, settings
from tests.unit.library.checkpoints import checkpoint, tensors


@pytest.fixture
def desk(home: Path) -> Desk:
    return Desk(home)


def test_a_plan_says_everything_that_a_start_does(desk: Desk) -> None:
    plan = desk.plan()
    assert plan.argv[:4] == (str(desk.venv.python), "-m", "vllm.entrypoints.cli.main", "serve")
    assert after(plan, "serve") == str(desk.folder)
    assert after(plan, "--uds") == str(desk.home / "run" / f"{plan.id}.sock")
    assert after(plan, "--max-model-len") == "4096"
    assert after(plan, "--max-num-seqs") == "8"
    assert after(plan, "--tool-call-parser") == "qwen3_xml"
    assert "--enforce-eager" in plan.argv
    assert plan.argv[-2:] == ("--additional-config", "{}")
    assert plan.environment["SNDR_OVERLAY"] == "/bundle"
    assert plan.environment["VLLM_CPU_KVCACHE_SPACE"] == "1"
    assert (plan.engine, plan.server, plan.installation) == ("vllm", ServerChoice.VENV, "0.32.0-cpu")
    assert plan.patches == desk.patches
    assert plan.startable
    assert plan.command == "sndr run m"
    (facts,) = desk.facts
    assert facts.ledger == desk.home / "run" / "ledger" / plan.id
    assert (facts.architectures, facts.speculation, facts.sm) == (("Qwen3_5ForCausalLM",), None, ())


def test_an_environment_of_the_persons_own_is_not_written_to(desk: Desk) -> None:
    desk.venv = replace(desk.venv, id="/opt/own/venv")
    cache = Path(desk.plan().environment["VLLM_CACHE_ROOT"])
    assert cache.parent == desk.home / "cache" / "vllm"


def test_the_format_decides_and_the_wrong_engine_is_refused_with_the_reason(desk: Desk) -> None:
    assert desk.plan("gguf").engine == "llama.cpp"
    wrong = desk.refused(LaunchRequest(model="gguf", engine=EngineKind.VLLM))
    assert (wrong.reason, "GGUF" in wrong.problem.message) == (Reason.UNSUPPORTED, True)
    wrong = desk.refused(LaunchRequest(model="m", engine=EngineKind.LLAMA_CPP))
    assert (wrong.reason, "safetensors" in wrong.problem.message) == (Reason.UNSUPPORTED, True)


@pytest.mark.parametrize(
    ("wanted", "given", "named"),
    [
        ("m", {"threads": 2, "kv_type_k": "q8_0"}, "threads, kv_type_k"),
        ("gguf", {"kv_cache_dtype": "fp8"}, "kv_cache_dtype"),
        ("gguf", {"eager": False, "tool_parser": "hermes"}, "eager, tool_parser"),
    ],
)
def test_settings_of_the_other_engine_are_refused_by_name(
    desk: Desk, wanted: str, given: dict[str, Any], named: str
) -> None:
    error = desk.refused(LaunchRequest(model=wanted, overrides=Overrides(**given)))
    assert error.reason is Reason.SETTING_INVALID
    assert named in error.problem.message


def test_servers_installations_and_patches_belong_to_one_engine(desk: Desk) -> None:
    for request in (
        LaunchRequest(model="m", server=ServerChoice.BUILT),
        LaunchRequest(model="gguf", server=ServerChoice.VENV),
        LaunchRequest(model="gguf", installation="0.32.0-cpu"),
        LaunchRequest(model="gguf", patches=PatchChoice(off=("all",))),
    ):
        assert desk.refused(request).reason is Reason.SETTING_INVALID


def test_every_value_tells_its_layer_and_why(desk: Desk) -> None:
    desk.settings.change({"engine.keep": True, "engine.streams": 4, "engine.threads": 2})
    found = settings(desk.plan(context=1024, eager=False))
    layers = {name: setting.layer for name, setting in found.items()}
    assert layers["context"] is layers["eager"] is Layer.OVERRIDE
    assert layers["streams"] is layers["keep"] is Layer.USER
    assert layers["name"] is layers["tool_parser"] is Layer.MODEL
    assert layers["installation"] is layers["kv_cache_gib"] is Layer.HARDWARE
    assert "threads" not in found, "llama.cpp's"
    assert all(setting.why for setting in desk.plan().settings if setting.layer is Layer.HARDWARE)


def test_turboquant_on_the_processor_is_refused(desk: Desk) -> None:
    error = desk.refused(LaunchRequest(model="m", overrides=Overrides(kv_cache_dtype="turboquant_k8v4")))
    assert error.reason is Reason.KV_CACHE_UNSAFE
    assert error.problem.evidence["kv_cache_dtype"] == "turboquant_k8v4"
    desk.cuda(gpu(0))
    assert after(desk.plan(kv_cache_dtype="turboquant_k8v4"), "--kv-cache-dtype") == "turboquant_k8v4"


@pytest.mark.parametrize("speculation", ["draft-mtp", "ngram-simple", "{"])
def test_a_speculation_that_vllm_does_not_know_is_refused(desk: Desk, speculation: str) -> None:
    error = desk.refused(LaunchRequest(model="m", overrides=Overrides(speculation=speculation)))
    assert error.reason is Reason.SETTING_INVALID


def test_a_shape_runs_with_random_weights(desk: Desk) -> None:
    (desk.folder / "model.safetensors").unlink()
    plan = desk.plan()
    assert after(plan, "--load-format") == "dummy"
    assert finding(plan, "dummy_weights").severity is Severity.INFO
    assert "--skip-tokenizer-init" not in plan.argv
    assert not desk.plan(dummy_weights=False).startable
    (desk.folder / "tokenizer.json").unlink()
    bare = desk.plan()
    assert "--skip-tokenizer-init" in bare.argv
    assert "--tool-call-parser" not in bare.argv
    assert finding(bare, "no_tokenizer").severity is Severity.WARNING
    assert not desk.plan(embeddings=True).startable, "vLLM's pooling server ends at once without a tokenizer"


@pytest.mark.parametrize(
    ("template", "tools", "reasoning"),
    [
        ("<tool_call>\n<function=x>", "qwen3_xml", None),
        ('<tool_call>\n{"name"', "hermes", None),
        ("<think></think><tool_call>", "hermes", "qwen3"),
        ("[TOOL_CALLS]", "mistral", None),
        ("plain", None, None),
    ],
)
def test_parsers_follow_the_template(
    desk: Desk, template: str, tools: str | None, reasoning: str | None
) -> None:
    desk.template = template
    found = settings(desk.plan())
    assert (found["tool_parser"].value, found["reasoning_parser"].value) == (tools, reasoning)
    assert "--tool-call-parser" not in desk.plan(tool_parser="off").argv
    assert after(desk.plan(tool_parser="pythonic"), "--tool-call-parser") == "pythonic"


def test_the_engines_own_values_are_those_that_its_entry_tells(desk: Desk) -> None:
    known = shipped().engines[PresetEngine.VLLM]
    desk.cuda(gpu(0))
    resolved = settings(desk.plan(context=2048))
    told = known.entry.settings.model_dump(exclude_unset=True, exclude={"context"})
    assert told == {name: resolved[name].value for name in told}
    assert {resolved[name].layer for name in told} == {Layer.ENGINE}


def test_a_processor_has_fewer_streams_than_the_engine_by_itself(desk: Desk) -> None:
    streams = settings(desk.plan())["streams"]
    assert (streams.value, streams.layer) == (8, Layer.HARDWARE)


def test_embeddings(desk: Desk) -> None:
    plan = desk.plan(embeddings=True)
    assert (after(plan, "--runner"), after(plan, "--convert")) == ("pooling", "embed")
    assert "--tool-call-parser" not in plan.argv
    (desk.folder / "modules.json").write_text("[]")
    assert "--convert" in desk.plan().argv


def test_the_kv_cache_on_the_processor_is_small_and_whole(desk: Desk) -> None:
    assert settings(desk.plan())["kv_cache_gib"].value == 1
    odd = settings(desk.plan(kv_cache_gib=2.7))["kv_cache_gib"]
    assert (odd.value, odd.why) == (2, "vLLM takes whole GiB on the CPU")
    # 40 attention layers × 8 heads × 128 × 4 bytes = 160 KiB a token.
    checkpoint(
        desk.folder,
        tensors(a=(8,)),
        num_hidden_layers=40,
        num_attention_heads=8,
        num_key_value_heads=8,
        head_dim=128,
        max_position_embeddings=32768,
    )
    assert settings(desk.plan(streams=1))["kv_cache_gib"].value == 2
    assert settings(desk.plan())["kv_cache_gib"].value == 4
    desk.free = 4 * GIB
    plan = desk.plan()
    assert settings(plan)["kv_cache_gib"].value == 1
    assert (finding(plan, "kv_cache_small").reason, plan.startable) == (Reason.OUT_OF_MEMORY, False)
    assert desk.plan(context=4096).startable


def test_memory_share_means_nothing_on_the_processor(desk: Desk) -> None:
    error = desk.refused(LaunchRequest(model="m", overrides=Overrides(gpu_memory=0.5)))
    assert error.reason is Reason.SETTING_INVALID


def test_what_changes_from_the_running_engine_names_patches_and_the_engine(desk: Desk) -> None:
    first = desk.plan()
    engine = Engine(
        id="e",
        name="m",
        engine="vllm",
        server=ServerChoice.VENV,
        server_version="",
        state=EngineState.READY,
        plan=first,
        created_at=0,
    )
    desk.running = [engine]
    desk.patches = PlannedPatches(digest="d2", chosen=("b", "c"))
    plan = desk.plan(eager=False)
    assert plan.changes == ("eager: yes → no", "patches: +c −a")
    other = desk.plan("gguf")
    assert (other.changes, other.beside[0].name) == ((), "m"), "another name runs beside it"
    other = run(desk.planner.plan(LaunchRequest(model="gguf", instead_of=("*",))))
    assert other.changes[0] == "engine: vllm → llama.cpp"
    assert other.changes[-1] == "patches: −a −b"
    assert not [change for change in other.changes if change.startswith("threads")]


def test_a_plan_is_stale_when_weights_environment_or_patches_change(desk: Desk) -> None:
    changes: list[Callable[[], None]] = [
        lambda: os.utime(desk.folder / "model.safetensors", (1, 1)),
        lambda: os.utime(desk.venv.record, (1, 1)),
        lambda: setattr(desk, "patches", PlannedPatches(digest="d9", chosen=())),
    ]
    for change in changes:
        plan = desk.plan()
        assert run(desk.planner.fresh(plan.id)) is plan
        change()
        with pytest.raises(HostError) as raised:
            run(desk.planner.fresh(plan.id))
        assert raised.value.reason is Reason.PLAN_STALE


def test_a_model_whose_weights_went_away_is_stale(desk: Desk) -> None:
    plan = desk.plan()
    (desk.folder / "model.safetensors").unlink()
    with pytest.raises(HostError) as raised:
        run(desk.planner.fresh(plan.id))
    assert raised.value.reason is Reason.PLAN_STALE


def test_the_equivalent_command_has_all_flags() -> None:
    request = LaunchRequest(
        model="m",
        engine=EngineKind.VLLM,
        installation="0.32.0-cpu",
        overrides=Overrides(kv_cache_dtype="fp8", speculation="mtp", eager=False, kv_cache_gib=2),
        patches=PatchChoice(off=("a", "family"), on=("b",), only=("c",)),
    )
    assert equivalent_command(request) == (
        "sndr run m --engine vllm --installation 0.32.0-cpu --kv-cache-dtype fp8 --speculation mtp "
        "--set kv_cache_gib=2.0 --set eager=false --without a --without family --with b --only c"
    )
