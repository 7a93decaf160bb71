"""Every operation of the control API, once: routes, clients and docs/CONTROL_API.md are made from this."""

from typing import Any

from engine_host.protocol.base import Version
from engine_host.protocol.bench.alerts import AlertPage, AlertQuery, SeeAlerts
from engine_host.protocol.bench.autopsy import AutopsyPage, OpenedAutopsy
from engine_host.protocol.bench.diagnosis import Diagnosis, DiagnosisQuery
from engine_host.protocol.bench.proofs import ProofPage, ProveKernels
from engine_host.protocol.bench.quality import MeasureQuality, QualityPage
from engine_host.protocol.engines import (
    Engine,
    EnginePage,
    InstallationPage,
    PinPlan,
    PinVllm,
    ServerBuild,
    ServerPage,
    StopEngine,
)
from engine_host.protocol.errors import Reason
from engine_host.protocol.events import EventQuery
from engine_host.protocol.host import HostInfo, HostStay
from engine_host.protocol.jobs import Job, JobKind, JobPage
from engine_host.protocol.launch.deploy import Rendering, RenderRequest
from engine_host.protocol.launch.fit import (
    FitReport,
    FitRequest,
    HubModel,
    HubPage,
    MeasuredPage,
    ReadFromHub,
)
from engine_host.protocol.launch.plans import BisectRequest, LaunchPlan, LaunchRequest, StartRequest
from engine_host.protocol.logs import LogPage, LogQuery
from engine_host.protocol.models import ModelPage
from engine_host.protocol.operations import (
    bench,
    endpoint,
    library,
    remote_hosts,
    remote_install,
    remote_staging,
    remote_transfers,
    services,
)
from engine_host.protocol.operations.definition import OF_PLANS, Done, EventStream, Nothing, Operation
from engine_host.protocol.patches import (
    CheckPage,
    EnginePatches,
    PatchDetail,
    PatchPage,
    PatchQuery,
    PlannedPatches,
    SwitchPatches,
)
from engine_host.protocol.presets import (
    CatalogPage,
    EditedPreset,
    EditPreset,
    ExportedPreset,
    ImportedPreset,
    ImportPreset,
    JudgePresets,
    LintPreset,
    PresetDetail,
    PresetFile,
    PresetForm,
    PresetLint,
    PresetPage,
    PresetVerdicts,
    ResolvedPreset,
    ResolvePreset,
    SavedPreset,
    SavePreset,
)
from engine_host.protocol.settings import MendSettings, SettingPage, SettingsChange, SettingsRepair
from engine_host.protocol.telemetry import (
    EnergyPage,
    EnergyQuery,
    MarkPage,
    MarkQuery,
    MemoryPage,
    TelemetryPage,
    TelemetryQuery,
)

# Each row: name, method, path, request, answer, what it does. Formatted by hand, to be read as a table.
# fmt: off

# Of the findings of a plan that stop its start.
_OF_FINDINGS = (
    Reason.CONFLICT, Reason.CONTEXT_TOO_LONG, Reason.ENGINE_UNUSABLE, Reason.KV_TYPE_UNSUPPORTED,
    Reason.MODEL_FILE_DAMAGED, Reason.MODEL_FILE_MISSING, Reason.OUT_OF_MEMORY, Reason.SETTING_INVALID,
    Reason.UNSUPPORTED)

# The host

VERSION = Operation(
    "host.version", "GET", "/v1/version", Nothing, Version,
    "The protocol and the program; `run_id` names this run of the host.",
    command="version")
HOST = Operation(
    "host.info", "GET", "/v1/host", Nothing, HostInfo,
    "The machine, with the processes that hold memory of each GPU, and the program.",
    command="status")
QUIT_HOST = Operation(
    "host.quit", "POST", "/v1/host/quit", Nothing, Done,
    "Let no new caller in, wait up to 10 s for other commands at work (known by `X-SNDR-Caller`), stop every "
    "engine that is not kept, then the host.",
    command="quit")
STAY_HOST = Operation(
    "host.stay", "POST", "/v1/host/stay", HostStay, HostInfo,
    "Go on without the window or the command that started the host, or end with it again.")

# Models and engines' programs

MODELS = Operation(
    "models.list", "GET", "/v1/models", Nothing, ModelPage,
    "The models of this machine.",
    command="models")
SCAN_MODELS = Operation(
    "models.scan", "POST", "/v1/models/scan", Nothing, ModelPage,
    "Look through the model folders again.",
    command="models", seconds=60)
SERVERS = Operation(
    "servers.list", "GET", "/v1/servers", Nothing, ServerPage,
    "Prebuilt, built and own llama.cpp servers.",
    command="engine list")
BUILD_SERVER = Operation(
    "servers.build", "POST", "/v1/servers/build", ServerBuild, Job,
    "Build llama.cpp for this machine; no backend is `auto`.",
    status=202, job=JobKind.ENGINE_BUILD, command="engine build")
COMPARE_SERVERS = Operation(
    "servers.compare", "POST", "/v1/servers/compare", Nothing, Job,
    "Measure the prebuilt llama.cpp server against the built one.",
    status=202, job=JobKind.ENGINE_COMPARE, command="engine compare")
INSTALLATIONS = Operation(
    "installations.list", "GET", "/v1/installations", Nothing, InstallationPage,
    "vLLM's environments that are or could be here, and what cut-off work left.",
    command="engine list")
INSTALL = Operation(
    "installations.install", "POST", "/v1/installations/{id}", Nothing, Job,
    "Install one of them; not while an engine runs from it.",
    status=202, reasons=(Reason.NOT_FOUND, Reason.CONFLICT),
    job=JobKind.ENGINE_INSTALL, command="engine install")
REMOVE_INSTALLATION = Operation(
    "installations.remove", "DELETE", "/v1/installations/{id}", Nothing, Job,
    "Remove one of them; not while an engine runs from it.",
    status=202, reasons=(Reason.NOT_FOUND, Reason.CONFLICT),
    job=JobKind.ENGINE_REMOVE, command="engine remove")
PLAN_PIN = Operation(
    "installations.pin.plan", "POST", "/v1/installations-pin/plan", PinVllm, PinPlan,
    "The vLLM that starts use where none is named, and what another pin would change.",
    reasons=(Reason.NOT_FOUND, Reason.CONFLICT), command="engine pin")
PIN = Operation(
    "installations.pin", "POST", "/v1/installations-pin", PinVllm, Job,
    "Have starts use another vLLM; it is installed first where it is not here.",
    status=202, reasons=(Reason.NOT_FOUND, Reason.CONFLICT),
    job=JobKind.ENGINE_PIN, command="engine pin")

# Patches

PATCHES = Operation(
    "patches.list", "GET", "/v1/patches", Nothing, PatchPage,
    "The catalogue in order of application, and the folders that cannot be used.",
    reasons=(Reason.PATCH_CYCLE,), command="patches list")
PATCH = Operation(
    "patches.show", "GET", "/v1/patches/{id}", PatchQuery, PatchDetail,
    "One patch, and what it touches in one vLLM, as a diff.",
    reasons=(Reason.PATCH_UNKNOWN, Reason.NOT_FOUND), command="patches show")
CHECK_PATCHES = Operation(
    "patches.check", "GET", "/v1/patches/check", PatchQuery, CheckPage,
    "Preflight of every patch; `vllm` is a version, an environment, a venv or a wheel.",
    reasons=(Reason.NOT_FOUND,), command="patches check")
PLAN_PATCHES = Operation(
    "patches.plan", "POST", "/v1/patches/plan", LaunchRequest, PlannedPatches,
    "The patches that a start would get, and why not the others.",
    reasons=(Reason.UNSUPPORTED, Reason.MODEL_FILE_MISSING), command="patches plan")
PLAN_PRESET_PATCHES = Operation(
    "patches.plan_preset", "POST", "/v1/patches/plan-preset", ResolvePreset, PlannedPatches,
    "The same of a preset on its hardware, without its files.",
    reasons=(Reason.NOT_FOUND, Reason.UNSUPPORTED), command="patches plan")
SWITCH_PATCHES = Operation(
    "patches.switch", "POST", "/v1/patches/switch", SwitchPatches, PatchPage,
    "Switch patches in the person's settings; it holds from the next start.",
    reasons=(Reason.PATCH_UNKNOWN, Reason.NOT_WRITABLE), command="patches switch")
BISECT_PATCHES = Operation(
    "patches.bisect", "POST", "/v1/patches/bisect", BisectRequest, Job,
    "Find the patch that makes a start fail its check; the job's result is a `BisectResult`.",
    status=202, reasons=(Reason.CONFLICT, Reason.CONSENT_NEEDED, Reason.UNSUPPORTED),
    job=JobKind.PATCH_BISECT, command="patches bisect")

# Proofs

PROOFS = Operation(
    "proofs.list", "GET", "/v1/proofs", Nothing, ProofPage,
    "Proofs of the TurboQuant kernels on GPUs of this machine, newest first, each with what changed since.",
    command="prove")
PROVE = Operation(
    "proofs.make", "POST", "/v1/proofs", ProveKernels, Job,
    "Prove them on one GPU: self-test, equal answers with MTP on and off, speed against bf16; the job's "
    "result is a `Proof`.",
    status=202, reasons=(Reason.NOT_FOUND, Reason.ENGINE_UNUSABLE, Reason.CONFLICT),
    job=JobKind.KERNEL_PROOF, command="prove")

QUALITIES = Operation(
    "quality.list", "GET", "/v1/quality", Nothing, QualityPage,
    "Measurements of quantised KV caches on this machine, newest first.",
    command="bench quality")
MEASURE_QUALITY = Operation(
    "quality.measure", "POST", "/v1/quality", MeasureQuality, Job,
    "Measure what types of the KV cache do to a model: perplexity, divergence from 16 bits, needles, greedy "
    "answers; the job's result is a `QualityReport`.",
    status=202, reasons=(*OF_PLANS, *_OF_FINDINGS), job=JobKind.KV_QUALITY, command="bench quality")

# Why engines are slow

DIAGNOSE = Operation(
    "diagnosis", "GET", "/v1/diagnosis", DiagnosisQuery, Diagnosis,
    "Why engines were slow in the last minutes: causes with evidence, the gravest first.",
    reasons=(Reason.NOT_FOUND,), command="doctor")

# Alerts

ALERTS = Operation(
    "alerts.list", "GET", "/v1/alerts", AlertQuery, AlertPage,
    "What somebody should look at: alerts that last or that nobody has seen, or all that are kept.",
    command="alerts")
SEE_ALERTS = Operation(
    "alerts.see", "POST", "/v1/alerts/see", SeeAlerts, AlertPage,
    "Put alerts away, those named or all; the answer is what still needs attention.",
    command="alerts")

# How engines died

AUTOPSIES = Operation(
    "autopsies.list", "GET", "/v1/autopsies", Nothing, AutopsyPage,
    "The records of engines that died, the newest first, and the files that cannot be read.",
    command="autopsy", seconds=30)
AUTOPSY = Operation(
    "autopsies.show", "GET", "/v1/autopsies/{id}", Nothing, OpenedAutopsy,
    "One of them: what was measured before the end, what ended the engine, what would have saved it.",
    reasons=(Reason.NOT_FOUND, Reason.UNSUPPORTED), command="autopsy")
REMOVE_AUTOPSY = Operation(
    "autopsies.remove", "DELETE", "/v1/autopsies/{id}", Nothing, AutopsyPage,
    "Remove one, also one that cannot be read; the answer is what is left.",
    reasons=(Reason.NOT_FOUND, Reason.NOT_WRITABLE), command="autopsy", seconds=30)

# Fit

FIT = Operation(
    "fit.report", "POST", "/v1/fit", FitRequest, FitReport,
    "What a model, or the start of a preset, needs on this machine or on other hardware: verdict, bounds, KV "
    "types, changes, advice, ceilings.",
    reasons=(Reason.NOT_FOUND, Reason.MODEL_FILE_MISSING, Reason.UNSUPPORTED), command="fit")
HUB_MODELS = Operation(
    "fit.hub", "GET", "/v1/fit/hub", Nothing, HubPage,
    "Configs that were read from Hugging Face before, without asking it.")
READ_FROM_HUB = Operation(
    "fit.read_from_hub", "POST", "/v1/fit/hub", ReadFromHub, HubModel,
    "Ask Hugging Face for the config of one model.",
    reasons=(
        Reason.NOT_FOUND, Reason.UNAUTHORIZED, Reason.OFFLINE, Reason.RATE_LIMITED, Reason.DOWNLOAD_FAILED,
        Reason.MODEL_FILE_DAMAGED),
    command="fit", seconds=60)
FIT_STARTS = Operation(
    "fit.starts", "GET", "/v1/fit/starts", Nothing, MeasuredPage,
    "Starts whose prediction was compared with what was measured, newest first.",
    command="fit")

# Presets

CATALOG = Operation(
    "presets.catalog", "GET", "/v1/catalog", Nothing, CatalogPage,
    "Models, hardware, profiles and engines of the catalogue.",
    command="presets hardware")
PRESET_FORM = Operation(
    "presets.form", "GET", "/v1/catalog/form", Nothing, PresetForm,
    "JSON Schemas for editing a preset.")
PRESETS = Operation(
    "presets.list", "GET", "/v1/presets", Nothing, PresetPage,
    "Every usable preset, and what is wrong in files, with their lines.",
    command="presets list")
PRESET = Operation(
    "presets.show", "GET", "/v1/presets/{id}", Nothing, PresetDetail,
    "One preset with its file, its model and what it resolves to.",
    reasons=(Reason.NOT_FOUND,), command="presets show")
PRESET_FILE = Operation(
    "presets.file", "GET", "/v1/presets/{id}/file", Nothing, PresetFile,
    "The YAML of one, also of one that cannot be used.",
    reasons=(Reason.NOT_FOUND,))
RESOLVE_PRESET = Operation(
    "presets.resolve", "POST", "/v1/presets/resolve", ResolvePreset, ResolvedPreset,
    "Every value with the layer, file and line that set it; conflicts; what the hardware lacks.",
    reasons=(Reason.NOT_FOUND,), command="presets resolve")
JUDGE_PRESETS = Operation(
    "presets.verdicts", "POST", "/v1/presets/verdicts", JudgePresets, PresetVerdicts,
    "Every preset on this machine or on hardware of the catalogue, what works best first, with what is "
    "missing to start it.",
    reasons=(Reason.NOT_FOUND,), command="presets verdicts", seconds=30)
VERIFY_PRESET = Operation(
    "presets.verify", "POST", "/v1/presets/{id}/verify", Nothing, Job,
    "SHA-256 of a preset's files against the catalogue; the job's result is a `CheckedFiles`.",
    status=202, reasons=(Reason.NOT_FOUND, Reason.MODEL_FILE_MISSING, Reason.UNSUPPORTED),
    job=JobKind.PRESET_VERIFY, command="presets verify")
LINT_PRESET = Operation(
    "presets.lint", "POST", "/v1/presets/lint", LintPreset, PresetLint,
    "What is wrong in a text, what it says, and the diff from what is saved.",
    command="presets lint")
EDIT_PRESET = Operation(
    "presets.edit", "POST", "/v1/presets/edit", EditPreset, EditedPreset,
    "A text with values changed, its comments kept; nothing is saved.",
    reasons=(Reason.PRESET_INVALID,), command="presets set")
SAVE_PRESET = Operation(
    "presets.save", "PUT", "/v1/presets/{id}", SavePreset, SavedPreset,
    "Save a person's own; the answer has the text that was there, to undo it.",
    reasons=(Reason.PRESET_INVALID, Reason.CONFLICT, Reason.DISK_FULL, Reason.NOT_WRITABLE),
    command="presets save")
REMOVE_PRESET = Operation(
    "presets.remove", "DELETE", "/v1/presets/{id}", Nothing, SavedPreset,
    "Remove a person's own; the answer has its text, to undo it.",
    reasons=(Reason.NOT_FOUND, Reason.CONFLICT), command="presets remove")
EXPORT_PRESET = Operation(
    "presets.export", "GET", "/v1/presets/{id}/export", Nothing, ExportedPreset,
    "One preset as one file with everything it needs.",
    reasons=(Reason.NOT_FOUND,), command="presets export")
IMPORT_PRESET = Operation(
    "presets.import", "POST", "/v1/presets/import", ImportPreset, ImportedPreset,
    "Take in such a file.",
    reasons=(
        Reason.PRESET_INVALID, Reason.CONFLICT, Reason.CONSENT_NEEDED, Reason.DISK_FULL, Reason.NOT_WRITABLE,
    ),
    command="presets import")

# Starts and engines

PLAN = Operation(
    "plans.make", "POST", "/v1/plans", LaunchRequest, LaunchPlan,
    "Plan the start of a model, or of a preset with the layers of its settings.",
    status=201, reasons=OF_PLANS, command="run")
PLANNED = Operation(
    "plans.show", "GET", "/v1/plans/{id}", Nothing, LaunchPlan,
    "A plan that was made before.",
    reasons=(Reason.NOT_FOUND,))
RENDER = Operation(
    "deploy.render", "POST", "/v1/render", RenderRequest, Rendering,
    "A start written down as files for one target, with the commands that check, start and stop it.",
    reasons=(*OF_PLANS, Reason.CONSENT_NEEDED), command="render")
ENGINES = Operation(
    "engines.list", "GET", "/v1/engines", Nothing, EnginePage,
    "The engines.",
    command="status")
START = Operation(
    "engines.start", "POST", "/v1/engines", StartRequest, Engine,
    "Start a plan; the engine's `job` is the start.",
    status=202, reasons=(Reason.PLAN_STALE, Reason.CONSENT_NEEDED, Reason.NOT_FOUND, *_OF_FINDINGS),
    job=JobKind.ENGINE_START, command="run")
REFUSED = Operation(
    "engines.refused", "POST", "/v1/engines/refused", LaunchRequest, Engine,
    "Remember a start that somebody asked for and whose plan is refused, as one that failed.",
    reasons=(Reason.CONFLICT, Reason.NOT_FOUND, Reason.MODEL_FILE_MISSING), command="run")
ENGINE = Operation(
    "engines.show", "GET", "/v1/engines/{id}", Nothing, Engine,
    "One engine by id or public name.",
    reasons=(Reason.NOT_FOUND,), command="status")
STOP = Operation(
    "engines.stop", "DELETE", "/v1/engines/{id}", StopEngine, Engine,
    "Drain and stop it; `now=true` kills.",
    status=202, reasons=(Reason.NOT_FOUND,), job=JobKind.ENGINE_STOP, command="stop")
PLAN_AGAIN = Operation(
    "engines.plan_again", "POST", "/v1/engines/{id}/plan", Nothing, LaunchPlan,
    "The plan of the same start once more: instead of the engine while it runs, and by itself once it ended.",
    status=201, reasons=(*OF_PLANS, Reason.CONFLICT), command="restart")
ENGINE_PATCHES = Operation(
    "engines.patches", "GET", "/v1/engines/{id}/patches", Nothing, EnginePatches,
    "What took effect in each of its processes.",
    reasons=(Reason.NOT_FOUND,), command="patches status")
PROBE_PATCHES = Operation(
    "engines.probe_patches", "POST", "/v1/engines/{id}/patches/probe", Nothing, EnginePatches,
    "The same, after every process was asked what is live.",
    reasons=(Reason.NOT_FOUND, Reason.NO_ENGINE_RUNS), command="patches probe", seconds=60)
START_WITHOUT = Operation(
    "engines.start_without", "POST", "/v1/engines/{id}/patches/{patch}/start-without", Nothing, Engine,
    "The same start without one patch.",
    status=202, reasons=(Reason.NOT_FOUND, Reason.CONFLICT),
    job=JobKind.ENGINE_START, command="patches without")

# Telemetry, jobs, logs, settings

TELEMETRY = Operation(
    "telemetry.series", "GET", "/v1/telemetry", TelemetryQuery, TelemetryPage,
    "Measured series.")
MARKS = Operation(
    "telemetry.marks", "GET", "/v1/telemetry/marks", MarkQuery, MarkPage,
    "What happened in that time: starts, ends, failed patches, measurements, routes that moved.")
MEMORY = Operation(
    "telemetry.memory", "GET", "/v1/telemetry/memory", Nothing, MemoryPage,
    "Who holds the memory of the GPUs and RAM now; engines by their parts.",
    command="telemetry memory")
ENERGY = Operation(
    "telemetry.energy", "GET", "/v1/telemetry/energy", EnergyQuery, EnergyPage,
    "The energy of the GPUs since a time, by their counters or their power, and for a thousand tokens.",
    command="telemetry energy")
JOBS = Operation(
    "jobs.list", "GET", "/v1/jobs", Nothing, JobPage,
    "The jobs, newest first.",
    command="jobs")
JOB = Operation(
    "jobs.show", "GET", "/v1/jobs/{id}", Nothing, Job,
    "One job.",
    reasons=(Reason.NOT_FOUND,))
CANCEL_JOB = Operation(
    "jobs.cancel", "DELETE", "/v1/jobs/{id}", Nothing, Job,
    "Cancel it.",
    status=202, reasons=(Reason.NOT_FOUND,), command="jobs cancel")
LOGS = Operation(
    "logs.read", "GET", "/v1/logs", LogQuery, LogPage,
    "Log lines of the host, the builds and the engines, oldest first.",
    command="logs")
SETTINGS = Operation(
    "settings.show", "GET", "/v1/settings", Nothing, SettingPage,
    "Every setting with the layer that set it.",
    command="settings get")
CHANGE_SETTINGS = Operation(
    "settings.change", "PUT", "/v1/settings", SettingsChange, SettingPage,
    "Set values; null brings the default back. `warnings` says what means nothing now.",
    reasons=(Reason.SETTING_INVALID, Reason.PORT_IN_USE, Reason.NOT_WRITABLE), command="settings set")
SETTINGS_REPAIR = Operation(
    "settings.look", "GET", "/v1/settings/repair", Nothing, SettingsRepair,
    "What is wrong with the file of the settings, and the diff of a repair; changes nothing.",
    command="settings check")
MEND_SETTINGS = Operation(
    "settings.mend", "POST", "/v1/settings/mend", MendSettings, SettingPage,
    "Repair the file, set it aside, or read it again; what it was stays beside it.",
    reasons=(Reason.SETTING_INVALID, Reason.NOT_WRITABLE, Reason.DISK_FULL), command="settings repair")

# fmt: on

EVENTS = EventStream(
    "host.events", "/v1/events", EventQuery, "Server-sent events: `id: seq`, `data: Event`.", "events"
)

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    *(value for value in globals().values() if isinstance(value, Operation)),
    *bench.OPERATIONS,
    *endpoint.OPERATIONS,
    *library.OPERATIONS,
    *remote_hosts.OPERATIONS,
    *remote_install.OPERATIONS,
    *remote_staging.OPERATIONS,
    *remote_transfers.OPERATIONS,
    *services.OPERATIONS,
)
