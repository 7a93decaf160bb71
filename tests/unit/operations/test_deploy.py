"""Plans of this machine as starts to write down: its GPUs by UUID, its engines, its files."""

import asyncio
from collections.abc import Collection, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine_host.catalog.resolve import TargetHardware
from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.package_data import presets, resources
from engine_host.core.settings import SettingsFile
from engine_host.core.store import Store
from engine_host.launch.dependencies import Environment
from engine_host.launch.preflight.machine import MachineState
from engine_host.library.index import IndexedModel
from engine_host.operations.deploy import DeployOperations
from engine_host.operations.deploy_fit import DeployFit
from engine_host.operations.fit import FitOperations
from engine_host.operations.plans import PlanOperations
from engine_host.operations.presets.catalog import PresetOperations
from engine_host.operations.presets.consents import PresetConsents
from engine_host.overlay.patch_catalog import BUILT_IN, PatchCatalog
from engine_host.overlay.selection import Switches
from engine_host.protocol.base import Severity
from engine_host.protocol.catalog import PresetStatus
from engine_host.protocol.errors import Reason
from engine_host.protocol.host import Gpu
from engine_host.protocol.launch.deploy import Rendering, RenderRequest, RenderTarget
from engine_host.protocol.launch.plans import Finding, LaunchPlan, LaunchRequest, Layer, Setting
from engine_host.protocol.models import ModelFile, ModelOrigin
from engine_host.protocol.patches import PlannedPatches
from tests.plan_samples import vllm_plan

GPUS = tuple(
    Gpu(index=n, uuid=f"GPU-{n}{n}{n}{n}-aaaa", name="NVIDIA L4", memory_total=1, memory_used=0)
    for n in range(4)
)
PYTHON = Path("/opt/vllm 0.32/bin/python")
MODEL = Path("/models/m")


def plan(**fields: Any) -> LaunchPlan:
    """A plan of vLLM on two of four GPUs."""
    values = {
        "context": 4096,
        "streams": 2,
        "tensor_parallel": 2,
        "gpu_memory": 0.8,
        "kv_cache_dtype": "auto",
    }
    return vllm_plan(
        **{
            "installation": "0.32.0-cuda",
            "model_path": str(MODEL),
            "settings": tuple(
                Setting(name=name, value=value, layer=Layer.ENGINE) for name, value in values.items()
            ),
            **fields,
        }
    )


def file_at(path: str) -> ModelFile:
    """A model here."""
    return ModelFile(
        id="m",
        name="m",
        path=path,
        size=1 << 30,
        format="safetensors",
        origin=ModelOrigin.FOLDER,
        found_in="/models",
    )


class FakePlanner:
    """Gives one plan, or the reason why there is none."""

    def __init__(self, answer: LaunchPlan | HostError) -> None:
        self._answer = answer

    async def plan(self, _request: LaunchRequest) -> LaunchPlan:
        if isinstance(self._answer, HostError):
            raise self._answer
        return self._answer


def services(answer: LaunchPlan | HostError, tmp_path: Path, build: str = "cuda") -> DeployOperations:
    """The services around a plan; the model and the environment are FAKE."""

    async def find_model(wanted: str, _formats: Collection[str]) -> IndexedModel:
        return cast(IndexedModel, SimpleNamespace(file=file_at(wanted), info=None))

    async def find_environment(_wanted: str | None) -> Environment:
        return cast(Environment, SimpleNamespace(python=PYTHON, version="0.32.0", build=build))

    async def find_server(_choice: object) -> Any:
        raise AssertionError("not for vLLM")

    catalogue = PresetOperations(
        presets, tmp_path / "own", SettingsFile(tmp_path / "s.toml"), EventLog(), lambda: ()
    )
    return DeployOperations(
        catalogue,
        cast(PlanOperations, FakePlanner(answer)),
        lambda: PatchCatalog.load((BUILT_IN,)),
        Switches,
        find_model,
        find_server,
        find_environment,
        lambda: GPUS,
        resources,
        DeployFit(catalogue, fits_of(catalogue)),
        PresetConsents(Store(tmp_path / "consents.sqlite")),
    )


def fits_of(catalogue: PresetOperations) -> FitOperations:
    """The real calculator without files of this machine and without anything that it learnt."""

    async def find_model(wanted: str, _formats: Collection[str]) -> IndexedModel:
        raise HostError(Reason.MODEL_FILE_MISSING, f"{wanted} has no files.")

    async def no_models() -> Sequence[ModelFile]:
        return ()

    store = cast(Store, SimpleNamespace(newest=lambda _kind, _limit: ()))
    return FitOperations(
        find_model,
        no_models,
        catalogue,
        lambda: GPUS,
        lambda: (1 << 34, 1 << 33),
        MachineState,
        lambda: (),
        store,
    )


def render(of: DeployOperations, target: RenderTarget, **fields: Any) -> Rendering:
    """A rendering for this machine."""
    launch = LaunchRequest.model_validate(fields.pop("launch", {"model": "m"}))
    return asyncio.run(of.render(RenderRequest(launch=launch, target=target, **fields)))


def test_a_manager_of_services_starts_what_this_host_does_not(tmp_path: Path) -> None:
    unsupported = HostError(Reason.UNSUPPORTED, "This program does not start SGLang.")
    launch = LaunchRequest(preset="qwen3.6-35b-a3b-sglang-4xl4")
    asked = RenderRequest(launch=launch, target=RenderTarget.DOCKER, force=True)
    for elsewhere in (True, False):
        described = services(unsupported, tmp_path).described(asked, elsewhere=elsewhere)
        assert "render.not-here" not in {one.id for one in asyncio.run(described).findings}


def test_the_gpus_of_a_plan_are_named(tmp_path: Path) -> None:
    chosen = plan(environment={"CUDA_VISIBLE_DEVICES": "1,3"})
    text = render(services(chosen, tmp_path), RenderTarget.SYSTEMD).files[0].text
    assert "CUDA_VISIBLE_DEVICES=GPU-1111-aaaa,GPU-3333-aaaa\n" in text
    assert f'ExecStart="{PYTHON}"' in text
    all_of_them = render(services(plan(), tmp_path), RenderTarget.DOCKER).files[0].text
    assert "device=GPU-0000-aaaa,GPU-1111-aaaa" in all_of_them
    assert "gpu-memory-utilization 0.8" in all_of_them


def test_gpus_that_are_asked_for_come_first(tmp_path: Path) -> None:
    made = render(services(plan(), tmp_path), RenderTarget.COMPOSE, gpus=("GPU-2222-aaaa", "GPU-3333-aaaa"))
    assert "GPU-0000-aaaa" not in made.files[0].text
    assert "GPU-3333-aaaa" in made.files[0].text


def test_the_processor_build_gets_the_processors_image(tmp_path: Path) -> None:
    text = render(services(plan(), tmp_path, build="cpu"), RenderTarget.DOCKER).files[0].text
    assert "vllm-cpu-release-repo" in text
    assert "--gpus" not in text


def test_patches_of_a_plan_are_its_overlay(tmp_path: Path) -> None:
    patched = plan(patches=PlannedPatches(digest="x", chosen=("json-whitespace-limit",), left_out=()))
    made = render(services(patched, tmp_path), RenderTarget.DOCKER)
    names = {file.name for file in made.files}
    assert "overlay/sndr_overlay/start.py" in names
    assert "dev.sndr.patch-ids=json-whitespace-limit" in made.files[0].text
    assert "overlay/" not in "".join(
        file.name for file in render(services(plan(), tmp_path), RenderTarget.DOCKER).files
    )


def test_only_what_holds_elsewhere_too_is_told(tmp_path: Path) -> None:
    findings = (
        Finding(id="a", severity=Severity.INFO, message="A"),
        Finding(id="b", severity=Severity.WARNING, message="B", reason=Reason.PORT_IN_USE),
        Finding(id="c", severity=Severity.WARNING, message="C"),
    )
    made = render(services(plan(findings=findings), tmp_path), RenderTarget.SHELL)
    assert {"a", "b", "c"} & {one.id for one in made.findings} == {"c"}


def test_what_no_plan_can_be_made_for_is_an_error_for_a_model(tmp_path: Path) -> None:
    error = HostError(Reason.MODEL_FILE_MISSING, "It is gone.")
    with pytest.raises(HostError) as refused:
        render(services(error, tmp_path), RenderTarget.DOCKER)
    assert refused.value.reason is Reason.MODEL_FILE_MISSING
    # A preset knows where to fetch it.
    made = render(services(error, tmp_path), RenderTarget.DOCKER, launch={"preset": "qwen3.6-27b-q4-24"})
    assert made.findings[0].reason is Reason.MODEL_FILE_MISSING
    assert "download.sh" in {file.name for file in made.files}
    for reason in (Reason.PRESET_CONFLICT, Reason.SETTING_INVALID):
        with pytest.raises(HostError):
            render(
                services(HostError(reason, "No."), tmp_path),
                RenderTarget.DOCKER,
                launch={"preset": "qwen3.6-27b-q4-24"},
            )


def test_a_preset_whose_model_is_not_here_is_written_for_the_gpus_that_are(tmp_path: Path) -> None:
    error = HostError(Reason.MODEL_FILE_MISSING, "It is not here.")
    preset = {"preset": "qwen3.6-27b-k8v4-2x24"}
    text = render(services(error, tmp_path), RenderTarget.DOCKER, launch=preset).files[0].text
    assert "device=GPU-0000-aaaa,GPU-1111-aaaa" in text
    assert "Lorbus/Qwen3.6-27B-int4-AutoRound" in text
    # Not on GPUs that cannot run it.
    error = HostError(Reason.ENGINE_UNUSABLE, "They are too old.")
    text = render(services(error, tmp_path), RenderTarget.DOCKER, launch=preset).files[0].text
    assert "GPU-0000-aaaa" not in text


def on(hardware: str, preset: str, tmp_path: Path, **fields: Any) -> Rendering:
    """A preset written down for a shell on hardware of the catalogue."""
    nothing = HostError(Reason.NOT_FOUND, "Nothing is asked of this machine.")
    return render(
        services(nothing, tmp_path),
        RenderTarget.SHELL,
        launch={"preset": preset, "overrides": fields.pop("overrides", {})},
        hardware=hardware,
        **fields,
    )


def test_a_start_that_does_not_fit_is_told_so(tmp_path: Path) -> None:
    too_much = {"context": 131072, "streams": 16}
    with pytest.raises(HostError) as refused:
        on("rtx-3090", "qwen3.6-27b-q4-24", tmp_path, overrides=too_much)
    assert refused.value.reason is Reason.OUT_OF_MEMORY
    assert "longest context" in refused.value.problem.message
    fix = refused.value.problem.fix
    assert fix is not None
    # The preset itself fits: it is what was set over it that is too much.
    assert "fewer streams" in fix.text
    assert "--force" in fix.text
    made = on("rtx-3090", "qwen3.6-27b-q4-24", tmp_path, overrides=too_much, force=True)
    (found,) = [one for one in made.findings if one.severity is Severity.ERROR]
    assert found.evidence["needed"] > found.evidence["room"] > 2**34
    assert "2097152" in made.files[0].text
    as_it_is = on("rtx-3090", "qwen3.6-27b-q4-24", tmp_path)
    assert Severity.ERROR not in {one.severity for one in as_it_is.findings}


def test_another_model_in_a_presets_place_is_judged_as_itself(tmp_path: Path) -> None:
    of = services(HostError(Reason.NOT_FOUND, "Nothing is asked of this machine."), tmp_path)
    resolved = asyncio.run(of.presets.resolve_for("qwen3.6-27b-q4-24", TargetHardware("rtx-3090")))
    large = asyncio.run(of.fit.of_preset(resolved, "gpt-oss-120b"))
    assert Severity.ERROR in {one.severity for one in large}
    assert Severity.ERROR not in {one.severity for one in asyncio.run(of.fit.of_preset(resolved))}


def test_what_is_named_instead_fits_the_same_hardware(tmp_path: Path) -> None:
    with pytest.raises(HostError) as refused:
        on("rtx-3060-12gb", "gpt-oss-120b-80", tmp_path)
    problem = refused.value.problem
    assert problem.fix is not None
    # The card names a preset for 24 GB, which is too large too.
    assert "gpt-oss-20b-24" not in problem.fix.text
    assert "rtx-3060-12gb" in (problem.fix.command or "") or "fits there" in problem.fix.text
    assert problem.evidence["findings"]


def test_an_engine_that_is_not_started_here_is_written_down_nevertheless(tmp_path: Path) -> None:
    made = on("l4", "qwen3.6-35b-a3b-sglang-4xl4", tmp_path, count=4)
    assert {"render.memory-unknown"} <= {one.id for one in made.findings}


def test_every_preset_is_written_where_it_is_known_to_run(tmp_path: Path) -> None:
    of = services(HostError(Reason.NOT_FOUND, "Nothing is asked of this machine."), tmp_path)
    catalog = asyncio.run(of.presets.catalog())
    refused = []
    for preset_id in catalog.ids():
        for hardware in catalog.preset(preset_id).needs.known_good:
            try:
                assert render(of, RenderTarget.SHELL, launch={"preset": preset_id}, hardware=hardware).files
            except HostError:
                refused.append(catalog.preset(preset_id).card.status)
    assert set(refused) <= {PresetStatus.UPSTREAM_GATED}


@pytest.mark.parametrize(
    ("gpus", "count", "said"),
    [
        (("GPU-2222-aaaa",), 2, "2 GPUs are asked for, and 1 is named"),
        (("GPU-2222-aaaa",), None, "over 2 GPUs, and 1 is named"),
        (("GPU-2222-aaaa", "GPU-2222-aaaa"), None, "twice"),
    ],
)
def test_as_many_gpus_are_named_as_are_needed(
    gpus: tuple[str, ...], count: int | None, said: str, tmp_path: Path
) -> None:
    with pytest.raises(HostError) as refused:
        on("rtx-3090", "qwen3.6-27b-k8v4-2x24", tmp_path, gpus=gpus, count=count)
    assert said in refused.value.problem.message
    with pytest.raises(HostError):
        render(services(plan(), tmp_path), RenderTarget.COMPOSE, gpus=gpus, count=count)


def test_threads_of_this_machine_do_not_go_to_a_cluster(tmp_path: Path) -> None:
    def threads(layer: Layer, target: RenderTarget) -> bool:
        settings = (
            *(one for one in plan().settings),
            Setting(name="threads", value=7, layer=layer),
        )
        of = services(plan(settings=settings), tmp_path)
        asked = RenderRequest(launch=LaunchRequest(model="m"), target=target)
        return "threads" in asyncio.run(of.wanted(asked)).values

    assert threads(Layer.HARDWARE, RenderTarget.DOCKER)
    assert threads(Layer.OVERRIDE, RenderTarget.KUBERNETES)
    assert not threads(Layer.HARDWARE, RenderTarget.KUBERNETES)
