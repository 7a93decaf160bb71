"""Measurements of a quantised KV cache: a job that starts a model with each type in turn, and those kept."""

import asyncio
import hashlib
import secrets
import shlex
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from engine_host import __version__
from engine_host.bench.quality.comparing import Observed, observe, quality
from engine_host.bench.quality.passages import Passages, passages
from engine_host.bench.quality.subjects import LlamaCppSubject, Subject, VllmSubject
from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.jobs import JobControl, JobRunner
from engine_host.core.log_buffer import LogBuffer
from engine_host.core.outside import files
from engine_host.core.store import Store
from engine_host.engines.adapter import Adapter
from engine_host.engines.llamacpp.status import LlamaCppAdapter
from engine_host.engines.temporary import temporary_engine
from engine_host.engines.vllm.status import VllmAdapter
from engine_host.launch.dependencies import Environment
from engine_host.launch.plans.vllm import CHECKPOINTS
from engine_host.library.checkpoint import CheckpointInfo
from engine_host.library.index import IndexedModel
from engine_host.operations.measurements.proofs import refuse_errors
from engine_host.operations.performs import performs
from engine_host.operations.plans import PlanOperations
from engine_host.protocol.bench.quality import (
    ALL_LAYERS,
    KvQuality,
    MeasureQuality,
    QualityPage,
    QualityReport,
)
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.engines import Engine
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import EngineKind, LaunchPlan, LaunchRequest
from engine_host.protocol.operations import table as ops
from engine_host.protocol.patches import PatchChoice

BUNDLED = "sndr-demo"
_KIND = "quality"
_KEPT = 100
_LONGEST_TEXT = 64 << 20
_BOUNDARY = "turboquant-boundary-layers"
REFERENCES = {EngineKind.LLAMA_CPP: "f16", EngineKind.VLLM: "auto"}
_USUAL = {
    EngineKind.LLAMA_CPP: ("q8_0", "q4_0"),
    EngineKind.VLLM: ("fp8", "turboquant_k8v4", f"turboquant_k8v4{ALL_LAYERS}", "turboquant_4bit_nc"),
}
# The CPU has the arithmetic of these alone: the patch rounds keys and values before they are stored.
_ROUND_TRIPS = {"fp8": "fp8", "turboquant_k8v4": "k8v4", "turboquant_4bit_nc": "4bit_nc"}
_ROUND_TRIP = "cpu-kv-round-trip"
_ROUND_TRIP_VARIABLE = "SNDR_KV_ROUND_TRIP"
_ROUND_TRIP_HOW = (
    "not the engine's own cache: keys and values are quantised and read back by the kernels' arithmetic in "
    "plain torch, then stored in the engine's data type; every token is read so, its own chunk's too"
)
_ADAPTERS: dict[str, Callable[[], Adapter]] = {"llama.cpp": LlamaCppAdapter, "vllm": VllmAdapter}


@dataclass(frozen=True)
class _Text:
    name: str
    sha256: str
    content: str


class QualityOperations:
    """Measures types of the KV cache, one model at a time, and remembers what came out."""

    def __init__(
        self,
        jobs: JobRunner,
        events: EventLog,
        log_buffer: LogBuffer,
        store: Store,
        plans: PlanOperations,
        find_model: Callable[[str, Collection[str]], Awaitable[IndexedModel]],
        find_environment: Callable[[str | None], Awaitable[Environment]],
        running: Callable[[], Sequence[Engine]],
        machine: Callable[[], str],
        texts: Callable[[], Path],
        run_folder: Path,
    ) -> None:
        self._jobs = jobs
        self._events = events
        self._log_buffer = log_buffer
        self._store = store
        self._plans = plans
        self._find_model = find_model
        self._find_environment = find_environment
        self._running = running
        self._machine = machine
        self._texts = texts
        self._run_folder = run_folder

    @performs(ops.QUALITIES)
    def page(self) -> QualityPage:
        """Return the measurements of this machine, newest first."""
        found = []
        for body in self._store.newest(_KIND, _KEPT):
            try:
                found.append(QualityReport.model_validate_json(body))
            except ValidationError:
                continue  # Of another version of this program.
        return QualityPage(seq=self._events.seq, reports=tuple(found))

    @performs(ops.MEASURE_QUALITY)
    async def measure(self, asked: MeasureQuality) -> Job:
        """Measure as a job whose result is a QualityReport.

        Raises HostError: what planning the reference's start raises, conflict while vLLM would have to share
        a GPU with an engine, bad_request for a text that cannot be read.
        """
        asked = await self._named(asked)
        text = await asyncio.to_thread(self._text, asked)
        cpu = asked.engine is EngineKind.VLLM and await self._on_cpu(asked)
        plan = await self._plans.plan(_start(asked, None, cpu=cpu).request)
        refuse_errors(plan)
        running = list(self._running())
        if running and plan.engine == EngineKind.VLLM.value:
            raise HostError(
                Reason.CONFLICT,
                tr("{running} is running.", running=running[0].name),
                cause="A measurement starts engines of its own, which need its memory.",
                fix=Fix(text="Stop it first.", command="sndr stop"),
                evidence={"engine": running[0].id},
            )
        return self._jobs.start(
            JobKind.KV_QUALITY,
            tr("Measure the KV cache of {plan}", plan=plan.name),
            "engine memory",
            _command(asked),
            lambda control: self._measure(control, asked, text, plan, cpu),
        )

    async def _named(self, asked: MeasureQuality) -> MeasureQuality:
        """Name model and engine: the bundled model, which llama.cpp runs everywhere; else by its format."""
        if asked.engine is not EngineKind.AUTO:
            return asked.model_copy(update={"model": asked.model or BUNDLED})
        if not asked.model:
            return asked.model_copy(update={"model": BUNDLED, "engine": EngineKind.LLAMA_CPP})
        found = await self._find_model(asked.model, ())
        engine = EngineKind.VLLM if found.file.format in CHECKPOINTS else EngineKind.LLAMA_CPP
        return asked.model_copy(update={"engine": engine})

    async def _on_cpu(self, asked: MeasureQuality) -> bool:
        return (await self._find_environment(asked.installation)).build == "cpu"

    def _text(self, asked: MeasureQuality) -> _Text:
        if asked.text is not None:
            path = files.expanded(asked.text)
        else:
            path = self._texts() / ("quality-demo.txt" if asked.model == BUNDLED else "quality.txt")
        try:
            content = files.read(path, _LONGEST_TEXT)
            return _Text(path.name, hashlib.sha256(content).hexdigest(), content.decode("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise HostError(
                Reason.BAD_REQUEST,
                tr("The text {path} cannot be read: {error}.", path=path, error=error),
                fix="Name a file of text in UTF-8.",
                evidence={"path": str(path)},
            ) from error

    async def _measure(
        self, control: JobControl, asked: MeasureQuality, text: _Text, plan: LaunchPlan, cpu: bool
    ) -> dict[str, Any]:
        began = time.monotonic()
        control.left = tr("Nothing of it was kept.")
        engine = EngineKind(plan.engine)
        model = await self._find_model(plan.model_path, ())
        vocabulary = model.info.vocabulary or 1
        hybrid = isinstance(model.info, CheckpointInfo) and model.info.hybrid
        # vLLM spares no layers of a hybrid, and the CPU none at all.
        usual = (one for one in _USUAL[engine] if not ((hybrid or cpu) and one.endswith(ALL_LAYERS)))
        kinds = (REFERENCES[engine], *(asked.kv or usual))
        rows: list[KvQuality] = []
        asking: Passages | None = None
        reference: Observed | None = None
        for number, kv in enumerate(kinds, 1):

            def tell(detail: str, share: float | None, number: int = number, kv: str = kv) -> None:
                control.step(number, len(kinds), tr("KV cache {kv}", kv=kv), detail, share)

            tell("starting the engine", None)
            try:
                start = _start(asked, None if reference is None else kv, cpu=cpu)
                plan = await self._plans.plan(start.request)
                refuse_errors(plan)
                adapter = _ADAPTERS[plan.engine]()
                async with temporary_engine(plan, adapter, self._run_folder, start.variables) as started:
                    subject: Subject = (
                        VllmSubject(started, asked.top)
                        if engine is EngineKind.VLLM
                        else LlamaCppSubject(started, asked.top)
                    )
                    if asking is None:
                        begin = await subject.start_tokens()
                        asking = await passages(text.content, asked, begin, subject.tokens)
                    seen = await observe(subject, asking, asked.answer_tokens, tell)
                row = await asyncio.to_thread(quality, kv, seen, reference, asking.needles, vocabulary)
            except HostError as error:
                if reference is None:
                    raise
                # The next type may do.
                lines = [str(line) for line in error.problem.evidence.get("lines", ())]
                self._log_buffer.add("quality", [f"{kv}: {error.problem.sentence()}", *lines])
                rows.append(KvQuality(kv=kv, problem=error.problem))
                continue
            reference = reference or seen
            patches = plan.patches.chosen if plan.patches else ()
            # A measurement that is cut off later has said what it knew.
            self._log_buffer.add("quality", [row.model_dump_json(exclude_defaults=True)])
            rows.append(row.model_copy(update={"patches": patches, "argv": plan.argv, "how": start.how}))
        assert asking is not None
        report = QualityReport(
            id=f"quality-{secrets.token_hex(4)}",
            at=time.time(),
            model=plan.name,
            model_path=plan.model_path,
            engine=plan.engine,
            server_version=plan.server_version,
            machine=await asyncio.to_thread(self._machine),
            program=__version__,
            text=text.name,
            text_sha256=text.sha256,
            asked=asked,
            measured_positions=asking.positions,
            rows=tuple(rows),
            seconds=round(time.monotonic() - began, 1),
            command=_command(asked),
        )
        self._store.put(_KIND, report.id, report.at, report.model_dump_json())
        self._store.prune(_KIND, _KEPT)
        control.left = ""
        return report.model_dump(mode="json")


@dataclass(frozen=True)
class _Start:
    """The start of one type; `how` says by what it is computed, where not by the engine itself."""

    request: LaunchRequest
    variables: Mapping[str, str] = field(default_factory=dict)
    how: str = ""


def _start(asked: MeasureQuality, kv: str | None, *, cpu: bool) -> _Start:
    """The start of a type; None is the reference, which beside itself shows how far two runs are apart.

    On the CPU vLLM has none of the other types.

    Raises HostError(kv_type_unsupported) there for one whose arithmetic is not written down.
    """
    if not cpu or kv in {None, REFERENCES[asked.engine]}:
        return _Start(_request(asked, kv))
    if kv not in _ROUND_TRIPS:
        raise HostError(
            Reason.KV_TYPE_UNSUPPORTED,
            tr("vLLM's CPU build has no {kv}, and its arithmetic is not written down here.", kv=kv),
            fix=tr("On the CPU there are {round_trips}.", round_trips=", ".join(_ROUND_TRIPS)),
            evidence={"kv": kv},
        )
    request = _request(asked, None)
    request = request.model_copy(update={"patches": PatchChoice(on=(_ROUND_TRIP,))})
    return _Start(request, {_ROUND_TRIP_VARIABLE: _ROUND_TRIPS[kv]}, _ROUND_TRIP_HOW)


def _request(asked: MeasureQuality, kv: str | None) -> LaunchRequest:
    """The request for a type. Settings that only one engine has are set for that one."""
    engine = asked.engine
    update: dict[str, Any] = {
        "context": asked.context + asked.answer_tokens + 16,
        "streams": 1,
        "speculation": "off",
    }
    patches = PatchChoice()
    if engine is EngineKind.VLLM:
        every_layer = kv is not None and kv.endswith(ALL_LAYERS)
        update |= {
            "kv_cache_dtype": (kv or REFERENCES[engine]).removesuffix(ALL_LAYERS),
            "prefix_caching": False,
            "batched_tokens": asked.chunk,
            "extra_arguments": (*asked.overrides.extra_arguments, f"--max-logprobs={asked.top}"),
        }
        if asked.overrides.eager is None:
            update["eager"] = True
        patches = PatchChoice(on=(_BOUNDARY,)) if every_layer else PatchChoice(off=(_BOUNDARY,))
    else:
        update |= dict.fromkeys(("kv_type_k", "kv_type_v"), kv or REFERENCES[engine])
    return LaunchRequest(
        model=asked.model,
        engine=engine,
        server=asked.server,
        installation=asked.installation,
        overrides=Overrides.model_validate(asked.overrides.model_dump(exclude_none=True) | update),
        patches=patches,
        gpus=asked.gpus,
    )


def _command(asked: MeasureQuality) -> str:
    words = ["sndr", "bench", "quality", asked.model]
    usual = MeasureQuality()
    for name, option in (
        ("engine", "--engine"),
        ("installation", "--installation"),
        ("text", "--text"),
        ("positions", "--positions"),
        ("context", "--context"),
        ("top", "--top"),
        ("chunk", "--chunk"),
        ("answers", "--answers"),
        ("answer_tokens", "--answer-tokens"),
    ):
        value = getattr(asked, name)
        if value != getattr(usual, name):
            words += [option, str(value)]
    for kv in asked.kv:
        words += ["--kv", kv]
    for gpu in asked.gpus:
        words += ["--gpu", gpu]
    for name, value in asked.overrides.model_dump(exclude_none=True, exclude_defaults=True).items():
        values = value if isinstance(value, list | tuple) else (value,)
        for one in values:
            words += ["--set", f"{name}={one}"]
    return shlex.join(words)
