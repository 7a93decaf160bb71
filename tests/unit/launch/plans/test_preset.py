"""Plans of presets: one resolution with its layers, patches, what runs now, and what makes a plan stale."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine_host.catalog.index import Catalog
from engine_host.catalog.resolve import TargetHardware, UserValues, require, resolve
from engine_host.core.errors import HostError
from engine_host.launch.dependencies import PatchFacts, PlanPatches
from engine_host.launch.equivalent_command import equivalent_command
from engine_host.launch.preflight.machine import Holder, MachineState
from engine_host.launch.resolution import PresetStart
from engine_host.operations.plans import PlanOperations
from engine_host.protocol.base import Severity
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.errors import Reason
from engine_host.protocol.host import Gpu
from engine_host.protocol.launch.consents import ConsentNeeded, Demand
from engine_host.protocol.launch.plans import (
    EngineKind,
    Finding,
    LaunchPlan,
    LaunchRequest,
    Layer,
    Setting,
)
from engine_host.protocol.patches import PatchChoice
from tests.shipped_catalog import shipped
from tests.unit.asynchronous import run
from tests.unit.launch.vllm_desk import Desk as VllmDesk
from tests.unit.launch.vllm_desk import gpu
from tests.unit.operations.test_plans import Desk

GIB = 1 << 30
CATALOG = shipped()


class Presets:
    """The catalogue that ships, for one machine; the model of every preset is the desk's."""

    def __init__(self, model: str, machine: TargetHardware) -> None:
        self.model = model
        self.machine = machine
        self.user: UserValues | None = None
        self.mark = "files"
        self.findings: tuple[Finding, ...] = ()
        self.catalog: Catalog = CATALOG
        self.consent: ConsentNeeded | None = None

    async def __call__(self, request: LaunchRequest) -> PresetStart:
        assert request.preset is not None
        found = resolve(self.catalog, request.preset, self.machine, self.user, request.overrides)
        model = request.model or self.model
        return PresetStart(require(found), model, self.findings, self.mark, self.consent)


class PresetDesk:
    """A planner that knows presets."""

    def __init__(self, desk: Desk | VllmDesk, model: str, machine: TargetHardware) -> None:
        self.desk = desk
        self.presets = Presets(model, machine)
        self.state = MachineState(driver="580.95", cuda="13.0")
        self.gpus: tuple[Gpu, ...] = ()

        async def is_preset(name: str) -> bool:
            return name in CATALOG.ids()

        self.planner = PlanOperations(
            replace(
                desk.planner._dependencies,
                find_preset=self.presets,
                is_preset=is_preset,
                machine=lambda: self.state,
                gpus=lambda: self.gpus,
            )
        )

    def plan(self, preset: str, **fields: Any) -> LaunchPlan:
        return run(self.planner.plan(LaunchRequest(preset=preset, **fields)))

    def stale(self, plan: LaunchPlan) -> HostError:
        with pytest.raises(HostError) as raised:
            run(self.planner.fresh(plan.id))
        assert raised.value.reason is Reason.PLAN_STALE
        return raised.value


@pytest.fixture
def llama(home: Path) -> PresetDesk:
    return PresetDesk(Desk(home), "m", TargetHardware(None, 0))


@pytest.fixture
def vllm(home: Path) -> PresetDesk:
    return PresetDesk(VllmDesk(home), "m", TargetHardware(None, 0))


@pytest.fixture
def cuda(home: Path) -> PresetDesk:
    desk = VllmDesk(home)
    desk.venv = replace(desk.venv, id="0.32.0-cuda", build="cuda", label="vLLM 0.32.0 (CUDA)")
    found = PresetDesk(desk, "m", TargetHardware("h200", 2))
    found.gpus = (gpu(0), gpu(1))
    return found


def settings(plan: LaunchPlan) -> dict[str, Setting]:
    return {setting.name: setting for setting in plan.settings}


def ids(plan: LaunchPlan) -> set[str]:
    return {finding.id for finding in plan.findings}


def test_every_setting_tells_the_layer_that_set_it_and_what_it_overruled(llama: PresetDesk) -> None:
    plan = llama.plan("demo-llamacpp", overrides=Overrides(context=1024))
    assert plan.preset == "demo-llamacpp"
    found = settings(plan)
    assert (found["context"].value, found["context"].layer) == (1024, Layer.OVERRIDE)
    assert found["context"].why == "over 8192 (preset)"
    assert (found["streams"].value, found["streams"].layer) == (2, Layer.PROFILE)
    assert found["streams"].why.startswith("presets/profiles/latency.yaml, line ")
    assert (found["flash_attention"].value, found["flash_attention"].layer) == ("on", Layer.PROFILE)
    assert found["kv_type_k"].layer is Layer.ENGINE
    assert plan.command == "sndr launch demo-llamacpp --context 1024"


def test_the_plan_says_what_a_person_has_to_consent_to(llama: PresetDesk) -> None:
    asked = Demand(file="mine.yaml", key="k", what="--tools all", does="Runs shell commands.")
    llama.presets.consent = ConsentNeeded(digest="d", demands=(asked,))
    assert llama.plan("demo-llamacpp").consent == llama.presets.consent
    assert llama.plan("demo-llamacpp").startable, "it starts once there is consent"


def test_what_the_settings_file_says_lies_between_preset_and_override(llama: PresetDesk) -> None:
    llama.desk.settings.change({"engine.context": 2048, "engine.threads": 1})
    llama.presets.user = UserValues(
        "settings.toml", {"context": 2048, "threads": 1}, {"context": "engine.context"}
    )
    found = settings(llama.plan("demo-llamacpp"))
    assert (found["context"].value, found["context"].layer) == (2048, Layer.USER)
    assert found["context"].why == "settings.toml, over 8192 (preset)"
    assert found["threads"].layer is Layer.USER
    assert settings(llama.plan("demo-llamacpp", overrides=Overrides(context=512)))["context"].value == 512


def test_what_only_the_other_engine_knows_does_not_reach_it(vllm: PresetDesk) -> None:
    vllm.presets.user = UserValues("settings.toml", {"threads": 4, "streams": 3}, {})
    found = settings(vllm.plan("demo-vllm"))
    assert "threads" not in found
    assert found["streams"].value == 3


@pytest.mark.parametrize("preset", [name for name in CATALOG.ids() if CATALOG.preset(name).engine == "vllm"])
def test_the_plan_has_what_its_preset_resolves_to(cuda: PresetDesk, preset: str) -> None:
    cuda.presets.machine = TargetHardware("h200", 8)
    cuda.gpus = tuple(gpu(number) for number in range(8))
    plan = cuda.plan(preset)
    found = settings(plan)
    for setting in resolve(CATALOG, preset, cuda.presets.machine).settings:
        if setting.by.layer is not Layer.ENGINE and setting.value is not None:
            # A drafter of its own becomes the folder of this machine that holds it.
            if not str(setting.value).startswith("{"):
                assert found[setting.name].value == setting.value
            assert found[setting.name].layer is setting.by.layer


def test_layers_that_contradict_each_other_make_no_plan(llama: PresetDesk) -> None:
    with pytest.raises(HostError) as raised:
        llama.plan("demo-llamacpp", overrides=Overrides(context=1 << 20))
    assert raised.value.reason is Reason.SETTING_INVALID
    assert raised.value.problem.evidence["setting"] == "context"
    message = raised.value.problem.message
    assert "by the layer override" in message
    assert "by the layer model (presets/models/sndr-demo.yaml, line " in message


def test_a_profile_does_not_switch_on_what_ends_the_engine(vllm: PresetDesk) -> None:
    plan = vllm.plan("demo-vllm", overrides=Overrides(speculation="mtp"))
    assert settings(plan)["prefix_caching"].value is False
    assert settings(plan)["prefix_caching"].layer is Layer.PRESET
    text = CATALOG.presets["demo-vllm"]
    changed = replace(
        text,
        entry=text.entry.model_copy(
            update={"settings": Overrides(context=2048, kv_cache_gib=1, eager=True, speculation="mtp")}
        ),
    )
    vllm.presets.catalog = replace(CATALOG, presets={**CATALOG.presets, "demo-vllm": changed})
    found = settings(vllm.plan("demo-vllm"))["prefix_caching"]
    assert (found.value, found.layer) == (False, Layer.HARDWARE), "the profile says true"
    meant = vllm.plan("demo-vllm", overrides=Overrides(prefix_caching=True))
    assert settings(meant)["prefix_caching"].value is True
    assert "prefix_caching_breaks" in ids(meant)


def test_a_presets_patches_hold_where_none_are_named(vllm: PresetDesk) -> None:
    entry = CATALOG.presets["demo-vllm"]
    choice = PatchChoice(off=("a",))
    changed = replace(entry, entry=entry.entry.model_copy(update={"patches": choice}))
    vllm.presets.catalog = replace(CATALOG, presets={**CATALOG.presets, "demo-vllm": changed})
    requested: list[PatchChoice] = []
    around = vllm.planner._dependencies

    def plan_patches(facts: PatchFacts, wanted: PatchChoice) -> PlanPatches:
        requested.append(wanted)
        return around.plan_patches(facts, wanted)

    vllm.planner = PlanOperations(replace(around, plan_patches=plan_patches))
    assert vllm.plan("demo-vllm").choice == choice
    other = PatchChoice(only=("b",))
    assert vllm.plan("demo-vllm", patches=other).choice == other
    assert requested == [choice, other]


def test_a_preset_for_gpus_does_not_run_in_the_build_for_processors(vllm: PresetDesk) -> None:
    vllm.presets.machine = TargetHardware("h200", 2)
    with pytest.raises(HostError) as raised:
        vllm.plan("qwen3-8b-h200")
    assert raised.value.reason is Reason.ENGINE_UNUSABLE
    fix = raised.value.problem.fix
    assert fix is not None
    assert fix.command == "sndr engine install vllm --version 0.32.0 --build cuda"
    assert fix.action is not None
    assert (fix.action.method, fix.action.path) == ("POST", "/v1/installations/0.32.0-cuda")


def test_a_preset_for_gpus_does_not_run_in_a_llama_cpp_without_them(llama: PresetDesk) -> None:
    llama.presets.machine = TargetHardware("rtx-3090", 1)
    with pytest.raises(HostError) as raised:
        llama.plan("qwen3.6-27b-q4-24")
    assert raised.value.reason is Reason.ENGINE_UNUSABLE
    fix = raised.value.problem.fix
    assert fix is not None
    assert (fix.action, fix.command) == (None, "sndr engine build llama.cpp --backend vulkan")
    llama.gpus = (gpu(0, total=24 * GIB),)
    with pytest.raises(HostError) as raised:
        llama.plan("qwen3.6-27b-q4-24")
    fix = raised.value.problem.fix
    assert fix is not None
    assert fix.action is not None, "one click builds for the GPU that is here"
    llama.desk.server = {"devices": ("CUDA0",)}  # type: ignore[union-attr]
    llama.gpus = (gpu(0, total=24 * GIB),)
    plan = llama.plan("qwen3.6-27b-q4-24")
    assert "--gpu-layers" in plan.argv
    assert "vram_short" not in ids(plan)


def test_windows_that_no_file_tells_of_are_known_from_the_catalogue(llama: PresetDesk) -> None:
    desk = llama.desk
    assert isinstance(desk, Desk)
    llama.presets.machine = TargetHardware("rtx-3090", 1)
    desk.server = {"devices": ("CUDA0",)}
    llama.gpus = (gpu(0, total=24 * GIB),)
    desk.info = replace(desk.info, layers=48, kv_heads=8, head_dim=256, sliding_window=1024, context=262_144)
    assert "vram_short" not in ids(llama.plan("gemma-4-12b-q8-24"))
    other = llama.plan("gemma-4-12b-q8-24", model="m")
    assert "vram_short" in ids(other), "of another model only its file is known"


def test_what_others_hold_is_told_before_llama_cpp_starts(llama: PresetDesk) -> None:
    llama.presets.machine = TargetHardware("rtx-3090", 1)
    llama.desk.server = {"devices": ("CUDA0",)}  # type: ignore[union-attr]
    llama.gpus = (gpu(0, used=23 * GIB, total=24 * GIB),)
    llama.state = replace(llama.state, holders=(Holder(0, 9, "blender", 23 * GIB),))
    finding = next(one for one in llama.plan("qwen3.6-27b-q4-24").findings if one.id == "vram_short")
    assert finding.severity is Severity.WARNING, "it may be gone until the start"
    assert "blender (pid 9) holds 23.0 GiB." in finding.message
    llama.gpus = (gpu(0, total=GIB // 2),)
    llama.state = replace(llama.state, holders=())
    finding = next(one for one in llama.plan("qwen3.6-27b-q4-24").findings if one.id == "vram_short")
    assert finding.severity is Severity.ERROR


def test_what_was_measured_with_another_version_is_told(llama: PresetDesk, cuda: PresetDesk) -> None:
    told = next(one for one in llama.plan("demo-llamacpp").findings if one.id == "preset.other_version")
    assert (told.severity, told.evidence["pins"]) == (
        Severity.INFO,
        ["prebuilt llama.cpp (xllamacpp 2026.10.11549)"],
    )
    assert "preset.other_version" not in ids(cuda.plan("qwen3-8b-h200"))


def test_a_drafter_of_its_own_has_to_be_here(cuda: PresetDesk) -> None:
    around = cuda.planner._dependencies
    known: dict[str, Any] = {}

    async def find(wanted: str, formats: Any) -> Any:
        if wanted.startswith("google/") and wanted not in known:
            raise HostError(Reason.MODEL_FILE_MISSING, f"There is no model {wanted}.")
        return await around.find_model("m", formats)

    cuda.planner = PlanOperations(replace(around, find_model=find))
    plan = cuda.plan("gemma-4-31b-2x24")
    missing = next(one for one in plan.findings if one.id == "drafter_missing")
    assert (missing.severity, missing.reason) == (Severity.ERROR, Reason.MODEL_FILE_MISSING)
    assert missing.fix is not None
    name = "google/gemma-4-31B-it-assistant"
    assert missing.fix.command == f"sndr models download {name} --choice safetensors"
    known[name] = True
    plan = cuda.plan("gemma-4-31b-2x24")
    assert "drafter_missing" not in ids(plan)
    config = plan.argv[plan.argv.index("--speculative-config") + 1]
    assert f'"model": "{cuda.desk.folder}"' in config, "vLLM fetches nothing by itself"  # type: ignore[union-attr]
    assert settings(plan)["speculation"].layer is Layer.PRESET


def test_a_preset_is_no_model_and_the_error_says_how_to_start_it(llama: PresetDesk) -> None:
    with pytest.raises(HostError) as raised:
        run(llama.planner.plan(LaunchRequest(model="demo-vllm")))
    assert raised.value.reason is Reason.MODEL_FILE_MISSING
    fix = raised.value.problem.fix
    assert fix is not None
    assert fix.command == "sndr launch demo-vllm"


def test_a_request_for_nothing_names_the_field(llama: PresetDesk) -> None:
    with pytest.raises(HostError) as raised:
        run(llama.planner.plan(LaunchRequest(engine=EngineKind.VLLM)))
    assert (raised.value.reason, raised.value.problem.evidence) == (Reason.BAD_REQUEST, {"field": "model"})


def _new_gpu(desk: PresetDesk) -> None:
    desk.gpus = (gpu(0), gpu(1), gpu(2))


def _new_driver(desk: PresetDesk) -> None:
    desk.state = replace(desk.state, driver="590.10")


def _edited(desk: PresetDesk) -> None:
    desk.presets.mark = "other files"


def _reinstalled(desk: PresetDesk) -> None:
    desk.desk.venv.record.write_text('{"again": true}')  # type: ignore[union-attr]


def _other_weights(desk: PresetDesk) -> None:
    path = desk.desk.folder / "config.json"  # type: ignore[union-attr]
    path.write_text(path.read_text() + "\n")


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (_new_gpu, "The GPUs"),
        (_new_driver, "The driver"),
        (_edited, "The preset"),
        (_reinstalled, "The engine"),
        (_other_weights, "The model"),
    ],
)
def test_a_changed_machine_is_noticed_and_named(
    cuda: PresetDesk, change: Callable[[PresetDesk], None], what: str
) -> None:
    plan = cuda.plan("qwen3-8b-h200")
    assert run(cuda.planner.fresh(plan.id)) is plan
    change(cuda)
    assert cuda.stale(plan).problem.message == f"{what} changed since this plan was made."


def test_two_changes_are_both_named(cuda: PresetDesk) -> None:
    plan = cuda.plan("qwen3-8b-h200")
    _new_gpu(cuda)
    _new_driver(cuda)
    stale = cuda.stale(plan)
    assert stale.problem.message == "The GPUs and the driver changed since this plan was made."
    assert stale.problem.evidence["changed"] == ["the GPUs", "the driver"]


def test_free_memory_matters_where_it_decides(cuda: PresetDesk) -> None:
    plan = cuda.plan("qwen3-8b-h200")
    assert "vram_held" not in ids(plan)
    cuda.gpus = (gpu(0, used=2 * GIB), gpu(1, used=2 * GIB))
    assert run(cuda.planner.fresh(plan.id)) is plan, "it is still enough"
    cuda.gpus = (gpu(0, used=60 * GIB), gpu(1, used=60 * GIB))
    cuda.state = replace(cuda.state, holders=(Holder(0, 7, "other", 60 * GIB),))
    stale = cuda.stale(plan)
    assert stale.problem.message.startswith("Since this plan was made: vLLM starts only when its share")
    cuda.gpus = (gpu(0), gpu(1))
    assert run(cuda.planner.fresh(plan.id)) is plan


def test_main_memory_that_is_not_enough_any_more_is_noticed(llama: PresetDesk) -> None:
    plan = llama.plan("demo-llamacpp")
    llama.desk.free -= 1 << 30
    assert run(llama.planner.fresh(plan.id)) is plan
    llama.desk.free = 1 << 20
    assert llama.stale(plan).problem.evidence["finding"] == "memory_short"
    short = llama.plan("demo-llamacpp")
    assert run(llama.planner.fresh(short.id)) is short, "who saw it may start it"


def test_files_of_a_preset_that_are_wrong_stop_it(llama: PresetDesk) -> None:
    llama.presets.findings = (
        Finding(
            id="weights.hash", severity=Severity.ERROR, reason=Reason.MODEL_FILE_DAMAGED, message="Damaged."
        ),
    )
    plan = llama.plan("demo-llamacpp")
    assert plan.findings[0].id == "weights.hash"
    assert not plan.startable


def test_the_equivalent_command_of_a_preset_is_a_launch_or_names_it() -> None:
    request = LaunchRequest(preset="p", model="/m x.gguf", overrides=Overrides(streams=3), keep=True)
    plain = "sndr launch p --model '/m x.gguf' --streams 3 --keep"
    assert equivalent_command(request, instead_of=("a b",)) == f"{plain} --instead-of 'a b'"
    for ended, words in ((("*",), "--replace"), (("x", "y"), "--instead-of x --instead-of y"), ((), "")):
        explicit = request.model_copy(update={"instead_of": ended})
        assert equivalent_command(explicit, instead_of=("other",)) == f"{plain} {words}".rstrip()
    bisected = equivalent_command(LaunchRequest(preset="p"), ("patches", "bisect"))
    assert bisected == "sndr patches bisect --preset p"
