"""Plans for vLLM: which engine runs what, settings with their reasons, patches, and what stops a start."""

import json
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from engine_host._errors import HostError
from engine_host.engines.llamacpp_servers import ServerCapabilities, ServerCommand
from engine_host.launch.planner import Planner
from engine_host.launch.surroundings import PatchesOfPlan, PatchFacts, Surroundings
from engine_host.launch.twin import twin
from engine_host.library.checkpoint import CheckpointInfo, read_checkpoint
from engine_host.library.shelf import ShelvedModel
from engine_host.protocol.base import Severity
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.errors import Reason
from engine_host.protocol.host import Gpu
from engine_host.protocol.models import ModelFile, ModelOrigin
from engine_host.protocol.patches import PatchChoice, PlannedPatches
from engine_host.protocol.plans import (
    EngineKind,
    Finding,
    LaunchPlan,
    LaunchRequest,
    Layer,
    Overrides,
    ServerChoice,
    Setting,
)
from engine_host.settings import SettingsFile
from tests.unit.asynchronous import run
from tests.unit.launch.models import model, server
from tests.unit.library.checkpoints import checkpoint, tensors

GIB = 1 << 30
HYBRID = {
    "num_hidden_layers": 4,
    "full_attention_interval": 4,
    "mtp_num_hidden_layers": 1,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 32,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "model_type": "qwen3_5_text",
    "architectures": ["Qwen3_5ForCausalLM"],
}


@dataclass(frozen=True)
class Venv:
    """An environment of vLLM of which only the record is on disk."""

    record: Path
    id: str = "0.32.0-cpu"
    version: str = "0.32.0"
    build: str = "cpu"
    label: str = "vLLM 0.32.0, CPU"
    python: Path = Path("/opt/vllm/bin/python")
    site_packages: Path = Path("/opt/vllm/lib")


def gpu(index: int, used: int = 0, total: int = 140 * GIB) -> Gpu:
    return Gpu(
        index=index,
        uuid=f"GPU-{index}",
        name="H200",
        memory_total=total,
        memory_used=used,
        compute_capability="9.0",
    )


class Desk:
    """A planner with a checkpoint and a record of vLLM on disk; nothing is started."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = checkpoint(home / "m", tensors(a=(8,), mtp__b=(2,)), **HYBRID)
        (self.folder / "tokenizer.json").write_text("{}")
        self.file = home / "x.gguf"
        self.file.write_bytes(b"weights")
        self.template = "<tool_call>\n<function=x>"
        self.settings = SettingsFile(home / "settings.toml")
        record = home / "installation.json"
        record.write_text("{}")
        self.venv = Venv(record)
        self.free = 64 * GIB
        self.total = 128 * GIB
        self.gpus: tuple[Gpu, ...] = ()
        self.running: list[Engine] = []
        self.facts: list[PatchFacts] = []
        self.patches = PlannedPatches(digest="d1", chosen=("a", "b"))
        self.planner = Planner(
            Surroundings(
                find_model=self._model,
                find_server=self._server,
                find_environment=self._environment,
                plan_patches=self._patches,
                settings=self.settings,
                free_memory=lambda: self.free,
                total_memory=self.total,
                gpus=lambda: self.gpus,
                running=lambda: self.running,
                run_folder=home / "run",
                cache_folder=home / "cache",
            )
        )

    def info(self) -> CheckpointInfo:
        (self.folder / "chat_template.jinja").write_text(self.template)
        return read_checkpoint(self.folder)

    async def _model(self, wanted: str, _formats: Collection[str]) -> ShelvedModel:
        if wanted == "gguf":
            return ShelvedModel(self._file("gguf", "GGUF"), model(path=self.file, parts=(self.file,)))
        info = self.info()
        return ShelvedModel(self._file("m", info.format), info)

    def _file(self, name: str, form: str) -> ModelFile:
        return ModelFile(
            id=name,
            name=name,
            path=str(self.folder),
            origin=ModelOrigin.FOLDER,
            found_in="",
            size=1,
            format=form,
        )

    async def _server(self, choice: ServerChoice) -> ServerCapabilities:
        command = ServerCommand(ServerChoice.BUILT, (str(self.file),), self.file)
        return server(choice, command=command)

    async def _environment(self, wanted: str | None) -> Venv:
        if wanted not in {None, self.venv.id}:
            raise HostError(Reason.NOT_FOUND, f"There is no {wanted}.")
        return self.venv

    def _patches(self, facts: PatchFacts, choice: PatchChoice) -> PatchesOfPlan:
        self.facts.append(facts)
        chosen = tuple(name for name in self.patches.chosen if name not in choice.off)
        planned = self.patches.model_copy(update={"chosen": chosen})
        return PatchesOfPlan(planned, {"SNDR_OVERLAY": "/bundle"}, ("--additional-config", "{}"))

    def plan(self, wanted: str = "m", *, patches: PatchChoice | None = None, **overrides: Any) -> LaunchPlan:
        asked = LaunchRequest(
            model=wanted, overrides=Overrides(**overrides), patches=patches or PatchChoice()
        )
        return self.make(asked)

    def make(self, request: LaunchRequest) -> LaunchPlan:
        return run(self.planner.plan(request))

    def refused(self, request: LaunchRequest) -> HostError:
        with pytest.raises(HostError) as raised:
            self.make(request)
        return raised.value

    def cuda(self, *gpus: Gpu) -> None:
        self.venv = replace(self.venv, id="0.32.0-cuda", build="cuda", label="vLLM 0.32.0, CUDA")
        self.gpus = gpus


@pytest.fixture
def desk(home: Path) -> Desk:
    return Desk(home)


def settings(plan: LaunchPlan) -> dict[str, Setting]:
    return {setting.name: setting for setting in plan.settings}


def after(plan: LaunchPlan, flag: str) -> str:
    return plan.argv[plan.argv.index(flag) + 1]


def finding(plan: LaunchPlan, name: str) -> Finding:
    return next(one for one in plan.findings if one.id == name)


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


def test_the_twin_has_all_flags() -> None:
    request = LaunchRequest(
        model="m",
        engine=EngineKind.VLLM,
        installation="0.32.0-cpu",
        overrides=Overrides(kv_cache_dtype="fp8", speculation="mtp", eager=False, kv_cache_gib=2),
        patches=PatchChoice(off=("a", "family"), on=("b",), only=("c",)),
    )
    assert twin(request) == (
        "sndr run m --engine vllm --installation 0.32.0-cpu --speculation mtp --kv-cache-dtype fp8 "
        "--set kv_cache_gib=2.0 --set eager=false --without a --without family --with b --only c"
    )
