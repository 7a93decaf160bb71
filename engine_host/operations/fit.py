"""Fit as the control API offers it: models and machines are looked up, starts are compared and remembered."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from engine_host.catalog.needs import Card
from engine_host.catalog.recognise import entry_called
from engine_host.catalog.resolve import TargetHardware
from engine_host.core.diagnosis.work import Ceiling
from engine_host.core.did_you_mean import near_names
from engine_host.core.errors import HostError
from engine_host.core.package_data import resources
from engine_host.core.store import Store
from engine_host.engines.llamacpp.servers import ServerCapabilities
from engine_host.fit.hardware import counted
from engine_host.fit.kv import check_kv_type
from engine_host.fit.parts import GIB
from engine_host.fit.report import report, start_of
from engine_host.fit.roofline import roofline
from engine_host.fit.shapes.read import model_of, model_of_config, windowed
from engine_host.fit.start import Device, Model, Start
from engine_host.fit.verified import CorrectionScope, LoggedMemory, compare, corrections, start_words
from engine_host.launch.gpu_choice import named_gpus
from engine_host.launch.placement import Held, Placement, found_memory, held_by_readings, place, references
from engine_host.launch.preflight.machine import MachineState
from engine_host.library.checkpoint import read_json
from engine_host.library.index import IndexedModel, ModelInfo
from engine_host.library.of_catalog import match
from engine_host.operations.fit_models import of_catalogue, others, spelled, suited
from engine_host.operations.performs import performs
from engine_host.operations.presets.catalog import HERE, PresetOperations
from engine_host.operations.presets.catalog_models import catalogued, with_drafter
from engine_host.operations.presets.fit import ENGINES, judged, overrides_of, question, refuse_other_engine
from engine_host.protocol.catalog import HardwareEntry
from engine_host.protocol.engine_settings.questions import question_of
from engine_host.protocol.engines import Engine
from engine_host.protocol.errors import Reason
from engine_host.protocol.host import Gpu
from engine_host.protocol.language import tr
from engine_host.protocol.launch.fit import (
    Correction,
    FitGpu,
    FitReport,
    FitRequest,
    Measured,
    MeasuredPage,
    Roofline,
    Verdict,
    memory_of_patches,
)
from engine_host.protocol.launch.plans import ALL_ENGINES, EngineKind, LaunchPlan, ServerChoice
from engine_host.protocol.models import ModelFile
from engine_host.protocol.operations import table as ops
from engine_host.protocol.presets import ResolvedPreset

_KIND = "fit"
_KEPT = 400
_CPU = "processor"
# The patch with which TurboQuant spares no layer.


class FitOperations:
    """Answers `/v1/fit`, and learns from the starts that it is told of."""

    def __init__(
        self,
        find_model: Callable[[str, Collection[str]], Awaitable[IndexedModel]],
        list_models: Callable[[], Awaitable[Sequence[ModelFile]]],
        presets: PresetOperations,
        gpus: Callable[[], Sequence[Gpu]],
        memory: Callable[[], tuple[int, int]],
        state: Callable[[], MachineState],
        running: Callable[[], Sequence[Engine]],
        store: Store,
        of_hub: Callable[[str, float | None], Model | None] = lambda _name, _bits: None,
        find_server: Callable[[], Awaitable[ServerCapabilities]] | None = None,
        held: Held = held_by_readings,
    ) -> None:
        """`memory` tells total and free bytes of main memory; `state` who holds that of the GPUs; `of_hub` a
        model whose config was read from Hugging Face before; `find_server` the llama.cpp of this machine that
        a start would take; `held` the main memory of an engine."""
        self._find_model = find_model
        self._list_models = list_models
        self._presets = presets
        self._catalog = presets.catalog
        self._gpus = gpus
        self._memory = memory
        self._state = state
        self._running = running
        self._held = held
        self._store = store
        self._of_hub = of_hub
        self._find_server = find_server
        self._read: dict[tuple[str, float | None], tuple[ModelInfo, Model]] = {}
        self._compared: set[str] = set()
        self._remembered: tuple[Measured, ...] | None = None

    @performs(ops.FIT)
    async def fit(self, request: FitRequest) -> FitReport:
        """The answer. Raises HostError for an unknown model, preset, hardware or KV type."""
        if request.hardware == HERE:
            request = request.model_copy(update={"hardware": None})
        if request.preset is not None:
            return await self._fit_preset(request, request.preset)
        if not request.model:
            raise HostError(
                Reason.BAD_REQUEST,
                "Neither a model nor a preset is named.",
                cause="What fits is told of one model with its settings.",
                fix="Give one of them.",
                evidence={"field": "model"},
            )
        model = await self._model(request)
        placement = self._placement(request, model)
        cpu, devices = await self._machine(request, placement)
        catalog = await self._catalog()
        model, variants = suited(catalog, request, model, devices, cpu=cpu)
        start, version = await self._with_server(request, _start(request, model, devices, cpu=cpu))
        learnt = self._learnt(start, model, version)
        found = report(request, model, start, learnt, others(catalog, model, start))
        return placed(found, placement).model_copy(update={"variants": variants})

    async def _fit_preset(self, asked: FitRequest, preset: str) -> FitReport:
        machine = await self._machine_meant(asked)
        plain = await self._presets.resolve_for(preset, machine)
        said = next((one.value for one in plain.settings if one.name == "speculation"), None)
        overrides = overrides_of(asked, plain.engine, said)
        resolved = await self._presets.resolve_for(preset, machine, overrides)
        request = question(resolved, asked)
        if resolved.engine not in ENGINES:
            return judged(_of_no_start(request, resolved), resolved)
        refuse_other_engine(resolved, asked)
        model = await (self._model(request) if asked.model else self.model_of_preset(resolved))
        refuse_other_engine(resolved, asked, model)
        placement = self._placement(request, model)
        cpu, devices = await self._machine(request, placement)
        start, version = await self._with_server(request, _start(request, model, devices, cpu=cpu))
        found = report(request, model, start, self._learnt(start, model, version))
        return judged(placed(found, placement).model_copy(update={"preset": preset}), resolved)

    async def model_of_preset(
        self, resolved: ResolvedPreset, models: Sequence[ModelFile] | None = None
    ) -> Model:
        """A preset's model: from its files where they are here, else by the shape that the catalogue knows.

        `models` are those of this machine. Raises HostError(unsupported) when its shape is not known.
        """
        entry = resolved.model
        variant = entry.variant(resolved.preset.variant)
        assert variant is not None
        listed = await self._list_models() if models is None else models
        here = match(variant, listed, resources())
        if here.found and not here.ambiguous and here.found[0].problem is None:
            model = await self._read_from(here.found[0].path, None)
            if variant.format == "gguf" and (shape := windowed(entry.shape)) is not None:
                # The file does not say which layers have a window.
                model = replace(model, shape=replace(shape, mtp_layers=model.shape.mtp_layers), unknown=())
        else:
            model = catalogued(entry, variant, None)
        return with_drafter(model, resolved)

    async def devices(self, request: FitRequest) -> tuple[bool, list[Device]]:
        """Return whether a question is about the processor, and the devices that it is about.

        What engines of this machine hold counts as free: it is about the machine, not about this moment.
        """
        everything = request.model_copy(update={"instead_of": (ALL_ENGINES,)})
        return await self._machine(request, self._placement(everything))

    def learnt(self, start: Start, model: Model) -> tuple[Correction, ...]:
        """The corrections that starts here taught for this one."""
        return self._learnt(start, model)

    async def _machine_meant(self, asked: FitRequest) -> TargetHardware:
        if asked.cpu:
            return TargetHardware(None, 0)
        if asked.gpus is not None:
            first = next(iter(asked.gpus), None)
            card = None if first is None else Card(first.name or "the GPU", first.total / 2**20, sm=first.sm)
            return TargetHardware(None, len(asked.gpus), card)
        count, name = (None, None) if asked.hardware is None else counted(asked.hardware)
        return await self._presets.machine_of(name, count)

    @performs(ops.FIT_STARTS)
    async def measured(self) -> MeasuredPage:
        """Starts that were compared, newest first."""
        return MeasuredPage(starts=self._starts())

    def wants(self, engine: Engine) -> bool:
        """Tell whether this engine's start was not compared yet and can be."""
        return engine.id not in self._compared and not engine.adopted and bool(engine.buffers)

    async def started(self, engine: Engine) -> tuple[Measured, ...]:
        """Compare a start that serves with what was predicted, once; a model of unknown shape has nothing.

        Raises HostError when the database cannot be used.
        """
        if not self.wants(engine):
            return ()
        self._compared.add(engine.id)
        request = request_of(engine.plan)
        try:
            model = await self._model(request)
            cpu, devices = await self.devices(request)
            start = start_of(request, model, devices, cpu=cpu)
            tokens = engine.readings.kv_capacity if engine.readings else None
            seen = LoggedMemory(engine.buffers, tokens)
            found = compare(model, start, seen, _where(start, engine.plan), time.time())
        except HostError as error:
            if error.reason is Reason.UNSUPPORTED:
                return ()
            raise
        for one in found:
            self._store.put(_KIND, f"{engine.id} {one.part}", one.at, one.model_dump_json())
        self._store.prune(_KIND, _KEPT)
        self._remembered = None
        return found

    async def ceiling_of(self, engine: Engine) -> Ceiling | None:
        """Return what its hardware allows this engine; None where model or GPUs are not known any more."""
        where = {"use_gpus": engine.plan.gpus} if engine.plan.gpus else {"cpu": True}
        request = request_of(engine.plan).model_copy(update=where)
        try:
            model = await self._model(request)
            cpu, devices = await self.devices(request)
            start = start_of(request, model, devices, cpu=cpu)
        except HostError:
            return None
        if start.embeddings:
            return None

        def ceiling(streams: int, depth: int | None, length: float | None) -> Roofline:
            return roofline(model, replace(start, streams=streams, context=depth or start.context), length)

        return ceiling

    async def _model(self, request: FitRequest) -> Model:
        wanted = request.model
        if wanted.endswith(".json") and Path(wanted).is_absolute():
            path = Path(wanted)
            config = await asyncio.to_thread(read_json, path)
            length = config.get("max_position_embeddings")
            return model_of_config(
                config,
                path.parent.name,
                bits=request.bits,
                context=length if type(length) is int else None,
            )
        if (known := of_catalogue(await self._catalog(), wanted, request.bits)) is not None:
            return known
        return await self._read_from(wanted, request.bits)

    async def _read_from(self, wanted: str, bits: float | None) -> Model:
        if "@" in wanted and (known := await asyncio.to_thread(self._of_hub, wanted, bits)) is not None:
            return known  # Not looked for here: that would read every folder again.
        try:
            shelved = await self._find_model(wanted, ())
        except HostError as error:
            if error.reason is not Reason.MODEL_FILE_MISSING:
                raise
            catalog = await self._catalog()
            if (other := spelled(catalog, wanted)) and (known := of_catalogue(catalog, other, bits)):
                return known
            if (known := await asyncio.to_thread(self._of_hub, wanted, bits)) is not None:
                return known
            raise await self._no_model(wanted, error) from error
        key = (wanted, bits)
        remembered = self._read.get(key)
        # The shelf reads a file again only when it changed.
        if remembered is None or remembered[0] is not shelved.info:
            read = await asyncio.to_thread(model_of, shelved.info, shelved.file.name, bits)
            self._read[key] = remembered = (shelved.info, read)
        return remembered[1]

    async def _no_model(self, wanted: str, error: HostError) -> HostError:
        """The same error, with what the name may have meant; a path says enough itself."""
        if Path(wanted).is_absolute():
            return error
        catalog = await self._catalog()
        if wanted in catalog.ids():
            fix = tr("It is a preset: sndr fit --preset {wanted}", wanted=wanted)
        else:
            near = near_names(wanted, [*catalog.models, *catalog.ids()], 3)
            fix = tr("Did you mean {near}? ", near=" or ".join(near)) if near else ""
            fix += (
                f"Models of the catalogue are {', '.join(sorted(catalog.models))}. A preset is named with "
                "--preset; for a model on Hugging Face add --online, or give the path of its files."
            )
        problem = error.problem
        return HostError(
            error.reason, problem.message, cause=problem.cause, fix=fix, evidence=problem.evidence
        )

    def _placement(self, request: FitRequest, model: Model | None = None) -> Placement:
        """The engines here that a start of this model ends, and those beside it; none on another machine.

        Raises HostError(not_found).
        """
        elsewhere = request.gpus is not None or (request.hardware is not None and not request.cpu)
        running = () if elsewhere else self._running()
        return place("" if model is None else model.name, request.instead_of, running)

    async def _machine(self, request: FitRequest, placement: Placement) -> tuple[bool, list[Device]]:
        """Return whether it is the processor, and the devices as this start finds them."""
        if request.gpus is not None:
            return False, [_asked(gpu, number) for number, gpu in enumerate(request.gpus)]
        if request.hardware is not None and not request.cpu:
            return False, await self._of_hardware(request.hardware, request.taken_gib or 0)
        gpus = [] if request.cpu else list(await asyncio.to_thread(self._gpus))
        gpus = list(named_gpus(request.use_gpus, gpus)) if request.use_gpus else gpus
        state = await asyncio.to_thread(self._state) if gpus else MachineState()
        total, free = self._memory()
        found = found_memory(placement, request.model, free, gpus, state, self._held)
        if gpus:
            return False, await self._here(found.gpus)
        return True, [Device(_CPU, total, max(total - found.main, 0))]

    async def _of_hardware(self, text: str, taken_gib: float) -> list[Device]:
        catalog = await self._catalog()
        count, name = counted(text)
        entry = catalog.gpu(name).entry
        devices = [device_of(entry, number) for number in range(count)]
        return [replace(device, taken=round(taken_gib * GIB)) for device in devices]

    async def _here(self, gpus: Sequence[Gpu]) -> list[Device]:
        catalog = await self._catalog()
        devices = []
        for number, gpu in enumerate(gpus):
            known = entry_called(catalog, gpu.name, gpu.memory_total)
            base = (
                device_of(catalog.gpu(known).entry, number) if known else Device(gpu.name, gpu.memory_total)
            )
            devices.append(
                replace(
                    base,
                    name=f"{gpu.name} #{gpu.index}",
                    total=gpu.memory_total,
                    taken=gpu.memory_total - gpu.memory_free,
                    sm=gpu.compute_capability,
                )
            )
        return devices

    async def _with_server(self, request: FitRequest, start: Start) -> tuple[Start, str | None]:
        """The start with the llama.cpp that would run it here, whose builds differ in what they set aside.

        Also that server's version; None of vLLM, of another machine, where a build was named, and where no
        server works.
        """
        elsewhere = request.hardware is not None or request.gpus is not None
        named = request.server is not ServerChoice.AUTO
        if self._find_server is None or elsewhere or named or start.engine is not EngineKind.LLAMA_CPP:
            return start, None
        try:
            found = await self._find_server()
        except HostError:  # The planner tells it; the estimate covers every build.
            return start, None
        return replace(start, server=found.choice), found.label

    def _learnt(self, start: Start, model: Model, version: str | None = None) -> tuple[Correction, ...]:
        starts = self._starts()
        here = (_gpu_name(start), start.engine.value)
        newest = next(
            (one for one in starts if (one.gpu, one.engine) == here and version in {None, one.version}), None
        )
        if newest is None:
            return ()
        where = CorrectionScope(
            newest.gpu, newest.engine, newest.version, newest.patches, model.name, start_words(start)
        )
        return corrections(starts, where)

    def _starts(self) -> tuple[Measured, ...]:
        if self._remembered is None:
            found = []
            for body in self._store.newest(_KIND, _KEPT):
                try:
                    found.append(Measured.model_validate_json(body))
                except ValidationError:
                    continue  # Of another version of this program.
            self._remembered = tuple(found)
        return self._remembered


def placed(found: FitReport, placement: Placement) -> FitReport:
    """The report with the engines that it counts as gone, and those that it does not."""
    refs = {"instead_of": references(placement.ended), "beside": references(placement.beside)}
    return found.model_copy(update=refs)


def _of_no_start(request: FitRequest, resolved: ResolvedPreset) -> FitReport:
    """The report on a preset whose engine this program does not start."""
    return FitReport(
        preset=resolved.preset.id,
        model=f"{resolved.model.id}/{resolved.preset.variant}",
        engine=request.engine,
        kv=request.kv or "auto",
        context=request.context or 0,
        streams=request.streams,
        tensor_parallel=request.tensor_parallel or 1,
        verdict=Verdict.CANNOT_RUN,
    )


def _start(request: FitRequest, model: Model, devices: Sequence[Device], *, cpu: bool) -> Start:
    """The start that a question is about. Raises HostError(setting_invalid) for what is no KV type."""
    start = start_of(request, model, devices, cpu=cpu)
    for kind in (start.kv, start.kv_v):
        check_kv_type(start.engine, kind)
    return start


def request_of(plan: LaunchPlan) -> FitRequest:
    """The question that a plan is the answer to."""
    known: dict[str, Any] = {setting.name: setting.value for setting in plan.settings}
    known |= {"context": plan.context, "streams": plan.streams}
    return FitRequest(
        model=plan.model_path,
        engine=EngineKind(plan.engine),
        server=plan.server,
        cpu=plan.engine == EngineKind.VLLM.value and "gpu_memory" not in known,
        **question_of(plan.engine, known),
        **memory_of_patches(plan.patches.chosen if plan.patches else ()),
    )


def _where(start: Start, plan: LaunchPlan) -> CorrectionScope:
    patches = plan.patches.digest if plan.patches else ""
    return CorrectionScope(_gpu_name(start), plan.engine, plan.server_version, patches)


def _gpu_name(start: Start) -> str:
    return _CPU if start.cpu or not start.devices else start.devices[0].name.partition(" #")[0]


def _asked(gpu: FitGpu, number: int) -> Device:
    return Device(
        gpu.name or f"GPU {number}",
        gpu.total,
        gpu.taken,
        gpu.sm,
        gpu.bandwidth,
        gpu.flops,
        gpu.pcie_lanes,
        gpu.power_share,
    )


def device_of(entry: HardwareEntry, number: int) -> Device:
    """A GPU of the catalogue, with a measured bandwidth before a published one."""
    bandwidth = entry.bandwidth_measured_gb_s or entry.bandwidth_gb_s
    flops = next((entry.tflops[kind] for kind in ("bf16", "fp16") if kind in entry.tflops), None)
    return Device(
        f"{entry.title} #{number}",
        round(entry.vram_mib.value * 2**20),
        0,
        entry.sm,
        bandwidth.value * 1e9,
        flops.value * 1e12 if flops else None,
    )
