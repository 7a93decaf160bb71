"""Verdicts for this machine: what is free, which engine and files are here, what comes first."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.package_data import presets
from engine_host.core.settings import SettingsFile
from engine_host.core.store import Store
from engine_host.engines.llamacpp.servers import ServerCapabilities
from engine_host.launch.preflight.machine import Holder, MachineState
from engine_host.library.index import IndexedModel
from engine_host.operations.fit import FitOperations
from engine_host.operations.presets.catalog import PresetOperations
from engine_host.operations.presets.fit import why_above
from engine_host.operations.presets.verdicts import PresetVerdictOperations
from engine_host.protocol.engines import Engine
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.host import Gpu
from engine_host.protocol.launch.fit import FitReport, FitRequest, Verdict
from engine_host.protocol.models import ModelFile, ModelOrigin
from engine_host.protocol.presets import JudgePresets, PresetVerdict, PresetVerdicts
from tests.plan_samples import engine_of, plain_plan
from tests.unit.asynchronous import run
from tests.unit.launch.models import server

GIB = 1 << 30


@dataclass(frozen=True)
class Venv:
    """An installed vLLM of which only the name matters."""

    build: str
    id: str = "0.32.0"
    version: str = "0.32.0"
    label: str = "vLLM 0.32.0"
    python: Path = field(default_factory=Path)
    site_packages: Path = field(default_factory=Path)
    record: Path = field(default_factory=Path)


class Machine:
    """A machine whose GPUs, models and engines a test names; the catalogue is the one that ships."""

    def __init__(self, home: Path) -> None:
        self.gpus: tuple[Gpu, ...] = ()
        self.models: list[ModelFile] = []
        self.holders: tuple[Holder, ...] = ()
        self.running: tuple[Engine, ...] = ()
        self.server: HostError | None = None
        self.devices: tuple[str, ...] = ("CUDA0",)
        self.vllm: Venv | HostError = Venv("cuda")
        self.events = EventLog()
        self.store = Store(home / "store.sqlite")
        settings = SettingsFile(home / "settings.toml")
        services = PresetOperations(presets, home / "own", settings, self.events, lambda: self.gpus)
        self.fits = FitOperations(
            self._model,
            self._list,
            services,
            lambda: self.gpus,
            lambda: (64 * GIB, 60 * GIB),
            lambda: MachineState(holders=self.holders),
            lambda: self.running,
            self.store,
        )
        self.verdicts = PresetVerdictOperations(
            services, self.fits, self._list, self._server, self._environment
        )

    async def _model(self, wanted: str, _formats: Collection[str]) -> IndexedModel:
        raise HostError(Reason.GGUF_TRUNCATED, f"{wanted} ends too early.")

    async def _list(self) -> Sequence[ModelFile]:
        return self.models

    async def _server(self) -> ServerCapabilities:
        if self.server is not None:
            raise self.server
        return server(devices=self.devices)

    async def _environment(self, _wanted: str | None) -> Venv:
        if isinstance(self.vllm, HostError):
            raise self.vllm
        return self.vllm

    def has(
        self, count: int, name: str = "NVIDIA GeForce RTX 3090", used: int = 0, total: int = 24 * GIB
    ) -> None:
        """Have so many cards of one kind."""
        self.gpus = tuple(
            Gpu(
                index=number,
                uuid=f"GPU-{number}",
                name=name,
                memory_total=total,
                memory_used=used,
                compute_capability="8.6",
            )
            for number in range(count)
        )

    def judge(self, **asked: object) -> PresetVerdicts:
        return run(self.verdicts.judge(JudgePresets.model_validate(asked)))

    def of(self, preset: str) -> PresetVerdict:
        return next(one for one in self.judge().verdicts if one.preset == preset)

    def fit(self, **asked: object) -> FitReport:
        return run(self.fits.fit(FitRequest.model_validate(asked)))


@pytest.fixture
def machine(home: Path) -> Iterator[Machine]:
    found = Machine(home)
    yield found
    found.store.close()
    found.events.close()


def file(path: str, form: str = "GGUF", size: int = 1) -> ModelFile:
    return ModelFile(
        id=Path(path).stem.lower(),
        name="m",
        path=path,
        origin=ModelOrigin.FOLDER,
        found_in="",
        size=size,
        format=form,
    )


def ids(found: PresetVerdict) -> set[str]:
    return {finding.id for finding in found.missing}


def test_what_is_free_decides(machine: Machine) -> None:
    machine.has(2)
    empty = machine.of("qwen3.6-27b-int4-2x24")
    assert machine.judge().hardware == "this machine: 2 × GeForce RTX 3090"
    assert empty.verdict is Verdict.FITS
    machine.has(2, used=8 * GIB)
    full = machine.of("qwen3.6-27b-int4-2x24")
    assert full.room is not None
    assert empty.room is not None
    assert full.room < empty.room
    machine.running = (engine_of(plain_plan(), pid=7),)
    machine.holders = tuple(Holder(number, 7, "demo", 8 * GIB, "engine-1") for number in range(2))
    assert machine.of("qwen3.6-27b-int4-2x24").room == empty.room, "engines of ours can be ended"


def test_fewer_cards_can_be_asked_for(machine: Machine) -> None:
    machine.has(2)
    page = machine.judge(count=1)
    assert page.hardware == "this machine: 1 × GeForce RTX 3090"
    two = next(one for one in page.verdicts if one.preset == "qwen3.6-27b-int4-2x24")
    assert (two.verdict, two.why) == (Verdict.CANNOT_RUN, "It needs 2 GPUs of 24 GiB; there is one.")
    assert machine.judge(hardware="here", count=1) == page
    with pytest.raises(HostError, match="This machine has 2 GPUs; a count of 8 was asked for"):
        machine.judge(count=8)
    machine.gpus = ()
    assert machine.judge(hardware="here").hardware == "this machine, which has no GPU"


def test_a_card_that_the_catalogue_does_not_know_is_judged_by_what_it_has(machine: Machine) -> None:
    machine.has(1, "Some card", total=24 * GIB)
    assert machine.judge().hardware == "this machine: 1 × Some card"
    found = machine.of("qwen3.6-27b-q4-24")
    assert found.verdict is Verdict.FITS
    assert found.decode is None, "its bandwidth is not known"
    machine.has(1, "Some card", total=8 * GIB)
    assert machine.of("qwen3.6-27b-q4-24").verdict is Verdict.DOES_NOT_FIT


def test_a_small_model_has_a_size_that_is_not_nothing(machine: Machine) -> None:
    missing = next(one for one in machine.of("demo-vllm").missing if one.id == "weights.missing")
    assert " MiB)" in missing.message


def test_engines_that_are_not_here_are_missing(machine: Machine) -> None:
    machine.has(2)
    assert ids(machine.of("qwen3.6-27b-int4-2x24")) == {"weights.missing"}
    machine.vllm = HostError(Reason.NOT_FOUND, "vLLM is not installed.", fix=Fix(text="", command="install"))
    machine.server = HostError(Reason.ENGINE_UNUSABLE, "No server works.")
    found = machine.of("qwen3.6-27b-int4-2x24")
    assert ids(found) == {"weights.missing", "engine.missing"}
    assert [one.fix.command for one in found.missing if one.fix and one.id == "engine.missing"] == ["install"]
    assert "engine.missing" in ids(machine.of("qwen3.6-27b-q4-24"))


def test_a_build_for_processors_is_not_enough_for_gpus(machine: Machine) -> None:
    machine.has(2)
    machine.vllm = Venv("cpu")
    build = next(one for one in machine.of("qwen3.6-27b-int4-2x24").missing if one.id == "engine.build")
    assert build.fix is not None
    assert build.fix.command == "sndr engine install vllm --version 0.32.0 --build cuda"
    assert build.fix.action is not None
    assert (build.fix.action.method, build.fix.action.path) == ("POST", "/v1/installations/0.32.0-cuda")
    assert "engine.build" not in ids(machine.of("demo-vllm"))
    machine.gpus = ()
    useless = next(one for one in machine.of("qwen3.6-27b-int4-2x24").missing if one.id == "engine.build")
    assert useless.fix is not None
    assert useless.fix.action is None, "no click installs 12 GB that do not run here"


def test_a_llama_cpp_without_gpus_is_not_enough_for_them(machine: Machine) -> None:
    machine.has(1)
    machine.devices = ()
    missing = {one.id: one for one in machine.of("qwen3.6-27b-q4-24").missing}
    fix = missing["engine.without_gpu"].fix
    assert fix is not None
    assert "--render docker" in fix.text
    assert "engine.without_gpu" not in ids(machine.of("demo-llamacpp"))


def test_a_model_that_is_here_is_named(machine: Machine) -> None:
    machine.has(1)
    machine.models = [
        file("/models/unsloth/Qwen3.6-27B-MTP-GGUF/Qwen3.6-27B-Q4_K_M.gguf", size=17_106_773_120)
    ]
    found = machine.of("qwen3.6-27b-q4-24")
    assert found.model == "qwen3.6-27b-q4_k_m"
    assert ids(found) == set()
    # Its file cannot be read: what it needs is not guessed then.
    assert found.verdict is Verdict.UNKNOWN
    assert found.reason is Reason.GGUF_TRUNCATED
    assert found.why.startswith("Whether it fits is not known: ")


def test_a_drafter_of_its_own_is_missing_too(machine: Machine) -> None:
    machine.has(2)
    assert "drafter_missing" in ids(machine.of("gemma-4-31b-2x24"))
    machine.models = [file("/models/google/gemma-4-31B-it-assistant", "safetensors")]
    assert "drafter_missing" not in ids(machine.of("gemma-4-31b-2x24"))
    assert "drafter_missing" not in ids(machine.of("qwen3.6-27b-int4-2x24"))


def test_what_somebody_measured_here_is_not_called_impossible(machine: Machine) -> None:
    verdicts = {}
    for name in ("NVIDIA GeForce RTX 3090", "NVIDIA GeForce RTX 4090"):
        machine.has(2, name)
        verdicts[name] = {one.preset: one for one in machine.judge().verdicts}
    for preset, here in verdicts["NVIDIA GeForce RTX 3090"].items():
        if here.why.startswith("It is reported to run on such GPUs"):
            assert here.verdict is Verdict.TIGHT
            there = verdicts["NVIDIA GeForce RTX 4090"][preset]
            assert there.verdict is not Verdict.FITS
    machine.has(2, used=20 * GIB)
    taken = machine.of("qwen3.6-27b-int4-2x24")
    assert (taken.verdict, taken.reason) == (Verdict.DOES_NOT_FIT, Reason.OUT_OF_MEMORY), (
        "others are in the way"
    )


def test_the_processor_is_this_machines_whatever_gpus_are_asked_for(machine: Machine) -> None:
    report = machine.fit(preset="qwen3-embedding-0.6b-cpu", hardware="rtx-3090")
    assert [device.name for device in report.devices] == ["processor"]
    assert report.devices[0].total == 64 * GIB


def test_the_order_is_the_same_however_often_it_is_asked_for(machine: Machine) -> None:
    machine.has(2)
    first = [one.preset for one in machine.judge().verdicts]
    assert first == [one.preset for one in machine.judge().verdicts]
    assert first.index("demo-llamacpp") > first.index("qwen3.6-27b-int4-2x24")


def test_a_preset_for_the_processor_is_not_judged_by_this_machine_for_another(machine: Machine) -> None:
    found = next(one for one in machine.judge(hardware="l4").verdicts if one.preset == "demo-llamacpp")
    assert (found.verdict, found.room, found.needed) == (Verdict.UNKNOWN, None, None)
    assert "how much main memory there is beside these GPUs is not known" in found.why


def test_without_a_gpu_llama_cpp_comes_before_vllm(machine: Machine) -> None:
    """On one model it is up in a second, takes a tenth of the memory and decodes several times as fast."""
    order = [one.preset for one in machine.judge().verdicts]
    assert order[0] == "demo-llamacpp"
    assert order.index("demo-llamacpp") < order.index("demo-vllm")


def test_a_ceiling_says_what_drafts_add_and_what_was_measured(machine: Machine) -> None:
    found = {one.preset: one for one in machine.judge(hardware="rtx-3090", count=2).verdicts}
    drafting = found["qwen3.6-27b-int4-2x24"]
    assert drafting.decode_undrafted is not None
    assert drafting.decode == pytest.approx(4 * drafting.decode_undrafted), "three drafts a step"
    assert drafting.measured is not None
    assert (drafting.measured.value, drafting.measured.hardware) == (70.7, "rtx-3090")
    assert found["llama-3.1-8b-24"].decode_undrafted is None, "nothing drafts"
    elsewhere = {one.preset: one for one in machine.judge(hardware="rtx-4090", count=2).verdicts}
    assert elsewhere["qwen3.6-27b-int4-2x24"].measured is None


def test_what_was_measured_above_a_bound_says_why(machine: Machine) -> None:
    found = {one.preset: one for one in machine.judge(hardware="rtx-3090", count=2).verdicts}
    above = found["qwen3.6-27b-fp8-2x24"]
    assert above.measured is not None
    assert (above.decode_undrafted or 0) < (above.measured.value or 0) <= (above.decode or 0)
    assert "because drafts were accepted: at least 1.55 tokens a step, of at most 4." in above.measured_why
    below = found["qwen3.6-27b-int4-2x24"]
    assert below.measured is not None
    assert (below.measured.value or 0) < (below.decode_undrafted or 0)
    assert below.measured_why == ""


def test_no_rate_of_the_catalogue_is_above_its_bound_without_a_reason(machine: Machine) -> None:
    compared = 0
    for hardware, count in (("rtx-3090", 1), ("rtx-3090", 2), ("rtx-a5000", 2), ("rtx-pro-6000", 1)):
        for one in machine.judge(hardware=hardware, count=count).verdicts:
            if one.measured is None or one.measured.value is None or one.decode is None:
                continue
            compared += 1
            assert one.measured.value <= one.decode, one.preset
            above = one.measured.value > (one.decode_undrafted or one.decode)
            assert above is bool(one.measured_why), one.preset
    assert compared >= 10


def test_more_than_the_hardware_allows_is_said_to_be_another_measurement() -> None:
    assert "above the limit of 100.0 tok/s" in why_above(100.0, 25.0, 101.0)
    assert why_above(100.0, None, 99.0) == ""
    assert why_above(None, None, 99.0) == ""


def test_fit_knows_what_here_is(machine: Machine) -> None:
    for count in (0, 2):
        machine.has(count)
        asked = {"preset": "demo-llamacpp"}
        assert machine.fit(**asked, hardware="here") == machine.fit(**asked)
