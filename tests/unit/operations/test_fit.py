"""The fit of this machine: the llama.cpp that would start here, and what its own starts taught."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.package_data import presets, resources
from engine_host.core.settings import SettingsFile
from engine_host.core.store import Store
from engine_host.engines.llamacpp.servers import ServerCapabilities
from engine_host.launch.preflight.machine import MachineState
from engine_host.library.gguf import read_gguf
from engine_host.library.index import IndexedModel
from engine_host.operations.fit import FitOperations, request_of
from engine_host.operations.presets.catalog import PresetOperations
from engine_host.protocol.errors import Reason
from engine_host.protocol.host import Gpu
from engine_host.protocol.launch.fit import FitPart, FitReport, FitRequest, Measured, PartSource
from engine_host.protocol.launch.plans import EngineKind, LaunchPlan, Layer, ServerChoice, Setting
from engine_host.protocol.models import ModelFile, ModelOrigin
from engine_host.protocol.patches import PlannedPatches
from tests.plan_samples import engine_of, plain_plan, vllm_plan
from tests.unit.asynchronous import run
from tests.unit.launch.models import server

GIB = 1 << 30
DEMO = resources() / "models" / "sndr-demo" / "sndr-demo-q8_0.gguf"


class Here:
    """A machine, without GPUs at first, that has the demo model and the llama.cpp that a test names."""

    def __init__(self, home: Path) -> None:
        self.server: ServerCapabilities | None = None
        self.gpus: tuple[Gpu, ...] = ()
        self.events = EventLog()
        self.store = Store(home / "store.sqlite")
        services = PresetOperations(
            presets, home / "own", SettingsFile(home / "settings.toml"), self.events, lambda: ()
        )
        self.fits = FitOperations(
            self._model,
            self._list,
            services,
            lambda: self.gpus,
            lambda: (16 * GIB, 12 * GIB),
            MachineState,
            lambda: (),
            self.store,
            find_server=self._server,
        )

    async def _model(self, _wanted: str, _formats: Collection[str]) -> IndexedModel:
        file = ModelFile(
            id="demo",
            name="demo",
            path=str(DEMO),
            origin=ModelOrigin.FOLDER,
            found_in="",
            size=DEMO.stat().st_size,
            format="GGUF",
        )
        return IndexedModel(file, read_gguf(DEMO))

    async def _list(self) -> Sequence[ModelFile]:
        return ()

    async def _server(self) -> ServerCapabilities:
        if self.server is None:
            raise HostError(Reason.ENGINE_UNUSABLE, "No server works.")
        return self.server

    def fit(self, **asked: object) -> FitReport:
        known = {"model": "demo", "context": 8192, "streams": 8}
        return run(self.fits.fit(FitRequest.model_validate(known | asked)))

    def learn(self, version: str, predicted: int, measured: int, at: float) -> None:
        one = Measured(
            at=at,
            engine=EngineKind.LLAMA_CPP.value,
            version=version,
            gpu="processor",
            patches="",
            model="demo",
            part="compute",
            predicted=predicted,
            measured=measured,
            start="8 × 8,192 tokens, KV f16",
        )
        self.store.put("fit", f"{version} compute", one.at, one.model_dump_json())


@pytest.fixture
def here(home: Path) -> Iterator[Here]:
    found = Here(home)
    yield found
    found.store.close()
    found.events.close()


def compute(report: FitReport) -> FitPart:
    return next(part for part in report.devices[0].parts if part.name == "compute")


def test_it_is_computed_for_the_llama_cpp_that_would_start(here: Here) -> None:
    sizes = {}
    for choice in (ServerChoice.BUILT, ServerChoice.PREBUILT):
        here.server = server(choice)
        sizes[choice] = compute(here.fit()).size
        assert sizes[choice] == compute(here.fit(server=choice)).size, "as a start of it is predicted"
    assert len(set(sizes.values())) == 2, "the two set different buffers aside"
    here.server = None
    part = compute(here.fit())
    assert part.low < min(sizes.values()), "without a server the band covers both"
    assert max(sizes.values()) < part.high


def test_another_llama_cpp_teaches_nothing(here: Here) -> None:
    here.server = replace(server(), version="2")
    here.learn("2", 10 << 20, 12 << 20, at=1.0)
    here.learn("1", 10 << 20, 15 << 20, at=2.0)
    report = here.fit()
    assert [(one.part, one.factor) for one in report.corrections] == [("compute", 1.2)]
    assert compute(report).source is PartSource.MEASURED
    here.server = replace(server(), version="3")
    assert here.fit().corrections == ()


def test_a_machine_that_is_only_described_has_no_llama_cpp(here: Here) -> None:
    plain = compute(here.fit(gpus=[{"total": 24 * GIB}]))
    here.server = server(ServerChoice.PREBUILT)
    assert compute(here.fit(gpus=[{"total": 24 * GIB}])) == plain


def test_the_ceiling_of_a_running_engine_is_that_of_its_own_gpus(here: Here) -> None:
    card = Gpu(index=0, uuid="GPU-a", name="NVIDIA GeForce RTX 3090", memory_total=24 * GIB, memory_used=0)
    here.gpus = (card, card.model_copy(update={"index": 1, "uuid": "GPU-b", "name": "Unknown"}))

    def most(*gpus: str, streams: int = 1, depth: int | None = None) -> float | None:
        plan = plain_plan(model_path=str(DEMO), context=8192, gpus=gpus)
        found = run(here.fits.ceiling_of(engine_of(plan)))
        return found(streams, depth, None).decode_all_streams if found is not None else None

    one = most("GPU-a")
    assert one is not None
    asked = FitRequest(model="demo", context=8192, hardware="rtx-3090", server=ServerChoice.PREBUILT)
    computed = run(here.fits.fit(asked)).roofline
    assert computed is not None
    assert one == pytest.approx(computed.decode), "as fit computes it"
    assert (most("GPU-a", streams=4) or 0) > 3 * one
    assert (most("GPU-a", depth=100_000) or 0) == pytest.approx(one), (
        "the context of a stream that just began"
    )
    assert most("GPU-b") is None, "its bandwidth is not known"
    assert most("GPU-gone") is None
    assert most() is None, "the processor's is not known"


def test_a_running_engine_is_compared_with_what_its_patches_make_of_the_cache() -> None:
    kv = Setting(name="kv_cache_dtype", value="turboquant_k8v4", layer=Layer.OVERRIDE, why="")
    plan = LaunchPlan(
        id="plan-1",
        fingerprint="0",
        created_at=1.0,
        model="m",
        model_path="/m",
        name="m",
        engine="vllm",
        server=ServerChoice.AUTO,
        server_version="0.26.0",
        argv=(),
        environment={},
        settings=(kv,),
        streams=1,
        context=4096,
        speculation="off",
        keep=False,
        findings=(),
        command="sndr run m",
    )
    assert request_of(plan).spared_layers
    for names, spared in ((("turboquant-boundary-layers",), False), (("json-whitespace-limit",), True)):
        patched = plan.model_copy(update={"patches": PlannedPatches(digest="0", chosen=names)})
        assert request_of(patched).spared_layers is spared
    assert not request_of(patched).eight_bit_head
    copied = plan.model_copy(update={"patches": PlannedPatches(digest="0", chosen=("draft-head-8-bit",))})
    assert request_of(copied).eight_bit_head
    assert not request_of(copied).grouped_attention
    ours = PlannedPatches(digest="0", chosen=("turboquant-grouped-attention",))
    assert request_of(plan.model_copy(update={"patches": ours})).grouped_attention


def test_a_plan_asks_with_all_that_its_memory_depends_on() -> None:
    values = {
        "context": 4096,
        "streams": 3,
        "kv_cache_dtype": "fp8",
        "speculation": '{"method": "mtp", "num_speculative_tokens": 5}',
        "draft_tokens": 3,
        "embeddings": True,
        "extra_arguments": ["--disable-hybrid-kv-cache-manager"],
        "prefix_caching": None,
        "gpu_memory": 0.8,
    }
    settings = tuple(Setting(name=name, value=one, layer=Layer.OVERRIDE) for name, one in values.items())
    asked = request_of(vllm_plan(settings=settings, context=4096, streams=3))
    assert (asked.context, asked.streams, asked.kv, asked.gpu_memory) == (4096, 3, "fp8", 0.8)
    assert (asked.speculation, asked.draft_tokens, asked.embeddings) == (True, 5, True)
    assert asked.extra_arguments == ("--disable-hybrid-kv-cache-manager",)
    assert asked.prefix_caching
    assert not asked.cpu
