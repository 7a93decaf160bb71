"""Values of the protocol for view tests, like those that a host sends."""

import json
import time
from typing import Any

from engine_host.core.diagnosis.gpu_absence import PciCard, Surroundings, explained
from engine_host.protocol.base import Severity
from engine_host.protocol.bench.diagnosis import Diagnosis, DiagnosisQuery, SlowCause
from engine_host.protocol.endpoint.on_demand import OnDemandModel, OnDemandState
from engine_host.protocol.engines import (
    Engine,
    EngineState,
    Installation,
    InstallationPage,
    Readings,
    Request,
    RequestState,
    ServerInfo,
    ServerPage,
    StageTime,
)
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.host import Endpoint, GpuAbsence, HostInfo, Reach
from engine_host.protocol.jobs import Job, JobKind, JobState, JobStep
from engine_host.protocol.launch.plans import Finding, LaunchPlan, LaunchRequest, Layer, ServerChoice, Setting
from engine_host.protocol.logs import LogLine
from engine_host.protocol.models import ModelFile, ModelOrigin, ModelPage
from engine_host.protocol.patches import (
    AppliesTo,
    EnginePatches,
    Patch,
    PatchDecision,
    PatchDetail,
    PatchEvidence,
    PatchKind,
    PatchOperation,
    PatchOutcome,
    PatchPage,
    PatchReason,
    PatchResult,
    PlannedPatches,
    ProcessPatches,
    ProcessRole,
    Risk,
)
from engine_host.protocol.settings import SettingPage
from engine_host.protocol.telemetry import Series, TelemetryPage

GIB = 2**30


def host(**changes: Any) -> HostInfo:
    """A machine without a GPU."""
    return HostInfo(
        seq=0,
        run_id="run-1",
        program="sndr 0.1.0",
        pid=1,
        started_at=time.time() - 60,
        hostname="workstation",
        os="Linux",
        python="3.11",
        cpu_name="CPU",
        cpu_cores=8,
        cpu_threads=16,
        ram_total=32 * GIB,
        ram_used=8 * GIB,
        gpus=(),
        gpu_absence=GpuAbsence.NO_DRIVER,
        driver=None,
        cuda=None,
        run_folder="/run/sndr",
        data_folder="/data",
        log_folder="/data/logs",
        endpoint=endpoint(),
        ends_with_window=True,
    ).model_copy(update=changes)


def endpoint(**changes: Any) -> Endpoint:
    """An endpoint on this machine only."""
    return Endpoint(
        url="http://127.0.0.1:8020/v1",
        host="127.0.0.1",
        port=8020,
        wanted_port=8020,
        reach=Reach.THIS_MACHINE,
        key_required=False,
    ).model_copy(update=changes)


def model(name: str, **changes: Any) -> ModelFile:
    """One model."""
    return ModelFile(
        id=name,
        name=name,
        path=f"/models/{name}.gguf",
        origin=ModelOrigin.FOLDER,
        found_in="/models",
        size=4 * GIB,
        format="GGUF",
        quantization="Q4_K_M",
        parameters=8_000_000_000,
        context=32768,
        mtp_layers=0,
    ).model_copy(update=changes)


def models() -> ModelPage:
    """The demo model, two others, and one that cannot be started."""
    damaged = Problem(
        reason=Reason.GGUF_TRUNCATED,
        message="The file ends before its tensors do.",
        cause="The download was interrupted.",
        fix=Fix(text="Download it again."),
    )
    listed = (
        model("sndr-demo", origin=ModelOrigin.BUNDLED, size=12 * 2**20, mtp_layers=1, context=8192),
        model("qwen3-8b"),
        model("gemma-4b", quantization="Q8_0"),
        model("broken", problem=damaged),
    )
    return ModelPage(seq=0, models=listed, folders=("/models",))


def servers(built: bool = False) -> ServerPage:
    """The prebuilt server, and the built one or its absence."""
    absent = Problem(
        reason=Reason.NOT_FOUND,
        message="llama.cpp has not been built on this machine.",
        fix=Fix(text="Build it once.", command="sndr engine build llama.cpp"),
    )
    offers = {"kv_types": ("f16", "q8_0", "q4_0"), "speculation": ("none", "draft-mtp", "ngram-simple")}
    return ServerPage(
        seq=0,
        servers=(
            ServerInfo(choice=ServerChoice.PREBUILT, present=True, version="11549", **offers),
            ServerInfo(choice=ServerChoice.BUILT, present=True, version="11549-native", **offers)
            if built
            else ServerInfo(choice=ServerChoice.BUILT, present=False, problem=absent),
        ),
        next_start=ServerChoice.BUILT if built else ServerChoice.PREBUILT,
    )


def installation(build: str = "cpu", **changes: Any) -> Installation:
    """An environment of vLLM that is installed."""
    return Installation(
        id=f"0.32.0-{build}",
        version="0.32.0",
        build=build,
        present=True,
        recommended=build == "cpu",
        path=f"/cache/vllm-environments/0.32.0-{build}",
        size=2 * GIB,
        needs_free=5 * GIB,
        download=GIB // 2,
        repairs=("torchvision", "metadata"),
        installed_at=time.time() - 7200,
    ).model_copy(update=changes)


def installations(present: bool = True) -> InstallationPage:
    """The CPU build, installed or not, and the CUDA build, which is not here."""
    absent: dict[str, Any] = {"present": False, "size": None, "path": "", "repairs": (), "installed_at": None}
    cuda = installation("cuda", **absent)
    cpu = installation() if present else installation(**absent)
    return InstallationPage(seq=0, installations=(cuda, cpu))


def install_job(
    wanted: str, kind: JobKind = JobKind.ENGINE_INSTALL, state: JobState = JobState.RUNNING
) -> Job:
    """An environment that is being installed or removed."""
    return job(
        kind,
        state,
        id=f"job-{wanted}",
        title=f"Install vLLM {wanted}",
        touches=f"vllm {wanted}",
        step=JobStep(number=3, of=6, name="Install the packages", detail="torch", progress=0.5),
    )


def vllm_models() -> ModelPage:
    """A GGUF file, a checkpoint with an MTP layer, and a shape."""
    listed = (
        model("sndr-demo", origin=ModelOrigin.BUNDLED, mtp_layers=1),
        model("qwen-checkpoint", format="safetensors", path="/models/qwen", mtp_layers=1, quantization=None),
        model("big-shape", format="shape", path="/models/big", size=0, quantization=None),
    )
    return ModelPage(seq=0, models=listed, folders=("/models",))


def vllm_plan(**changes: Any) -> LaunchPlan:
    """A plan of vLLM with its patches."""
    planned = PlannedPatches(
        digest="d",
        chosen=("P0001", "P0002", "P0003"),
        left_out=(
            PatchDecision(patch="P0004", reason=PatchReason.WRONG_GPU, detail="no GPU"),
            PatchDecision(patch="P0005", reason=PatchReason.NOT_DEFAULT, detail="it is off by default"),
        ),
        required=("P0003",),
    )
    values = {
        "model": "qwen-checkpoint",
        "engine": "vllm",
        "server": ServerChoice.VENV,
        "server_version": "vLLM 0.32.0 (CPU)",
        "installation": "0.32.0-cpu",
        "patches": planned,
        "argv": ("vllm", "serve", "/models/qwen"),
        "settings": (
            Setting(name="context", value=8192, layer=Layer.ENGINE),
            Setting(name="eager", value=True, layer=Layer.HARDWARE),
            Setting(name="kv_cache_gib", value=1, layer=Layer.HARDWARE),
            Setting(name="speculation", value="off", layer=Layer.ENGINE),
        ),
        "kv_types": {},
        "command": "sndr run qwen-checkpoint",
    }
    return plan(**values).model_copy(update=changes)


def settings(**values: Any) -> SettingPage:
    """The host's settings; those given are set by the user."""
    defaults: dict[str, Any] = {
        "endpoint.host": "127.0.0.1",
        "endpoint.port": 8020,
        "endpoint.allowed_hosts": [],
        "endpoint.queue_limit": 64,
        "endpoint.load_wait": 600,
        "endpoint.path": "",
        "endpoint.tls_certificate": None,
        "endpoint.tls_key": None,
        "models.folders": ["/models"],
        "models.other_programs": True,
        "engine.server": "auto",
        "engine.own_server": None,
        "engine.streams": 8,
        "engine.context": None,
        "engine.threads": None,
        "engine.keep": False,
        "engine.verify": "off",
        "alerts.gpu_temperature": 88,
        "alerts.gpu_memory": 0.99,
        "alerts.gpu_ecc": True,
        "alerts.ram": 0.95,
        "alerts.disk_free": 5.0,
        "host.outlive_window": False,
        "host.log_level": "info",
        "host.gpu_trace": None,
    }
    given = {name.replace("__", "."): value for name, value in values.items()}
    entries = [
        Setting(
            name=name,
            value=given.get(name, value),
            layer=Layer.USER if name in given else Layer.ENGINE,
            why="default",
        )
        for name, value in defaults.items()
    ]
    return SettingPage(seq=0, file="/config/settings.toml", settings=tuple(entries))


def plan(**changes: Any) -> LaunchPlan:
    """A plan with a finding."""
    return LaunchPlan(
        id="plan-1",
        fingerprint="abc",
        created_at=time.time(),
        model="sndr-demo",
        model_path="/models/sndr-demo.gguf",
        name="sndr-demo",
        engine="llama.cpp",
        server=ServerChoice.PREBUILT,
        server_version="11549",
        argv=("llama-server", "--model", "/models/sndr-demo.gguf", "--ctx-size", "8192"),
        environment={},
        settings=(
            Setting(name="context", value=8192, layer=Layer.MODEL, why="the model was trained for no more"),
            Setting(name="streams", value=4, layer=Layer.OVERRIDE, why=""),
            Setting(name="kv_type_k", value="f16", layer=Layer.ENGINE, why="llama.cpp's default"),
        ),
        streams=4,
        context=8192,
        speculation="off",
        keep=False,
        findings=(Finding(id="prebuilt", severity=Severity.INFO, message="The prebuilt llama.cpp runs."),),
        kv_types={"f16": "f16", "q8_0": "q8_0 with rotation", "q4_0": "q4_0 with rotation"},
        command="sndr run sndr-demo",
    ).model_copy(update=changes)


def engine(state: EngineState, **changes: Any) -> Engine:
    """An engine in a state."""
    now = time.time()
    live = state in (EngineState.READY, EngineState.BUSY)
    readings = Readings(
        at=now,
        slots_total=4,
        slots_busy=1,
        requests_waiting=0,
        kv_tokens=4096,
        kv_capacity=32768,
        memory=2 * GIB,
    )
    problem = Problem(
        reason=Reason.ENGINE_CRASHED,
        message="llama-server ended while it loaded the weights.",
        cause="It was killed for using more memory than there is.",
        fix=Fix(text="Start it with fewer streams.", command="sndr run sndr-demo --streams 1"),
    )
    return Engine(
        id="engine-1",
        name="sndr-demo",
        engine="llama.cpp",
        server=ServerChoice.PREBUILT,
        server_version="11549",
        state=state,
        plan=plan(),
        job="job-start",
        pid=100,
        created_at=now - 5,
        ready_at=now - 3 if live else None,
        stages=(
            StageTime(name="Start the server", started_at=now - 5, ended_at=now - 4),
            StageTime(
                name="Load the weights", detail="4.1 GiB", started_at=now - 4, ended_at=now if live else None
            ),
        ),
        readings=readings if live else None,
        problem=problem if state is EngineState.FAILED else None,
        last_lines=("loading model", "killed") if state is EngineState.FAILED else (),
    ).model_copy(update=changes)


def request(state: RequestState, number: int = 1, **changes: Any) -> Request:
    """A request in a state."""
    return Request(
        id=f"req-{number}",
        engine="engine-1",
        model="sndr-demo",
        route="/v1/chat/completions",
        client="curl/8",
        state=state,
        created_at=time.time() - number,
    ).model_copy(update=changes)


def job(kind: JobKind, state: JobState, **changes: Any) -> Job:
    """A build or a measurement."""
    failed = Problem(reason=Reason.COMPILER_MISSING, message="No C++ compiler was found.")
    return Job(
        id="job-1",
        kind=kind,
        title="Build llama.cpp",
        touches="server",
        state=state,
        step=JobStep(number=2, of=4, name="Compile", detail="120 of 400 files", progress=0.3),
        created_at=time.time(),
        started_at=time.time(),
        ended_at=time.time() if state in (JobState.DONE, JobState.FAILED, JobState.CANCELLED) else None,
        error=failed if state is JobState.FAILED else None,
        undone="The half-built files were removed." if state is JobState.CANCELLED else "",
    ).model_copy(update=changes)


def telemetry() -> TelemetryPage:
    """Two minutes of memory, KV cache and rates, with a gap."""
    now = time.time()
    at = tuple(now - 120 + second for second in range(120))

    def series(name: str, unit: str, title: str, value: float) -> Series:
        values = tuple(None if 50 <= place < 60 else value for place in range(120))
        return Series(name=name, unit=unit, title=title, source="test", at=at, values=values)

    return TelemetryPage(
        seq=0,
        step=1.0,
        series=(
            series("ram.used", "bytes", "RAM used", 8.0 * GIB),
            series("ram.total", "bytes", "RAM", 32.0 * GIB),
            series("engine.engine-1.memory", "bytes", "Engine RAM", 2.0 * GIB),
            series("engine.engine-1.kv.share", "share", "KV cache filled", 0.4),
            series("engine.engine-1.decode_rate", "tokens/s", "Decode", 140.0),
        ),
    )


NO_GPU = explained(9, "nvmlInit", Surroundings(cards=(PciCard("0000:01:00.0", "10de", "2684"),)))[1]


def diagnosis(asked: DiagnosisQuery, *causes: SlowCause, worked: float = 42.0) -> Diagnosis:
    """Return the diagnosis of one engine that worked, with these causes."""
    return Diagnosis(
        seq=0,
        seconds=asked.minutes * 60,
        busy={"sndr-demo": worked},
        causes=causes,
        not_measured=("sndr-demo: prefix hits",),
        no_gpu=NO_GPU,
    )


def log_lines() -> list[LogLine]:
    """Lines of the host and of an engine, one of them an error."""
    now = time.time()
    lines = [LogLine(source="host", number=1, at=now, severity=Severity.INFO, text="serving")]
    for number, text in enumerate(("loading", "out of memory", "exiting"), start=1):
        severity = Severity.ERROR if number == 2 else Severity.INFO
        lines.append(LogLine(source="engine-1", number=number, at=now, severity=severity, text=text))
    return lines


def chunk(text: str = "", **more: Any) -> str:
    """One piece of a streamed answer."""
    body = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}], **more}
    return f"data: {json.dumps(body)}\n\n"


def chat() -> list[str | float]:
    """A short answer in two paragraphs, with the engine's measurements."""
    timings = {"prompt_n": 12, "predicted_n": 9, "predicted_per_second": 120.5}
    return [
        chunk("Hello **there**.\n"),
        0.01,
        chunk("\nSecond paragraph."),
        chunk("", timings=timings),
        "data: [DONE]\n\n",
    ]


def patch(number: int, **changes: Any) -> Patch:
    """A patch of the catalogue."""
    family = ("kv_cache", "spec_decode", "reasoning", "loader")[number % 4]
    return Patch(
        id=f"P{number:04}",
        title=f"Sample patch {number}",
        family=family,
        kinds=(tuple(PatchKind)[number % 3],),
        problem="The sample engine forgets the last block of a request.",
        upstream=("https://github.com/vllm-project/vllm/issues/1",),
        applies_to=AppliesTo(vllm=">=0.26,<0.33" if number % 2 else "==0.32.0"),
        risk=Risk.LOW,
        evidence=(
            PatchEvidence(metric="decode", before=10.0, after=None, unit="tok/s", n=5, machine="sample"),
            PatchEvidence(metric="cache", before=1_775_210, after=2_085_648, unit="tokens"),
        ),
    ).model_copy(update=changes)


def patches(count: int = 12) -> PatchPage:
    """A catalogue."""
    return PatchPage(seq=0, patches=tuple(patch(number) for number in range(count)))


def patch_detail() -> PatchDetail:
    """A patch with its change."""
    diff = "--- a/vllm/sample.py\n+++ b/vllm/sample.py\n@@ -1,2 +1,2 @@\n-old = 1\n+new = 2\n same = 3"
    operation = PatchOperation(kind=PatchKind.TEXT, target="vllm.sample", diff=diff)
    return PatchDetail(seq=0, patch=patch(1), vllm="0.32.0", operations=(operation,))


def applies() -> EnginePatches:
    """Return the patch reports of two processes."""

    def result(number: int, outcome: PatchOutcome, reason: PatchReason | None = None) -> PatchResult:
        return PatchResult(patch=f"P{number:04}", outcome=outcome, reason=reason, ms=1.5 * (number + 1))

    now = time.time()
    core = tuple(result(number, PatchOutcome.APPLIED) for number in range(5))
    failed = result(5, PatchOutcome.FAILED, PatchReason.RAISED)
    skipped = result(6, PatchOutcome.SKIPPED, PatchReason.UPSTREAM_MERGED)
    return EnginePatches(
        seq=0,
        engine="engine-1",
        planned=None,
        processes=(
            ProcessPatches(pid=11, role=ProcessRole.API_SERVER, since=now - 5, results=core[:2]),
            ProcessPatches(
                pid=12, role=ProcessRole.ENGINE_CORE, since=now - 4, results=(*core, failed, skipped)
            ),
        ),
    )


def on_demand(state: OnDemandState = OnDemandState.LOADABLE, **fields: Any) -> OnDemandModel:
    """A model that a request loads."""
    model = OnDemandModel(
        name="small",
        launch=LaunchRequest(model="small", name="small"),
        command="sndr on-demand add small --name small",
        state=state,
        keep_alive=600,
    )
    return model.model_copy(update=fields)
