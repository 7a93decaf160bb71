"""Launch requests, and the frozen plan that each becomes."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from engine_host.protocol.base import Command, Seconds, Severity, Wire
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language.spoken import Sentence, Spoken
from engine_host.protocol.launch.consents import ConsentNeeded
from engine_host.protocol.patches import BisectCheck, PatchChoice, PlannedPatches


class Layer(StrEnum):
    """The source of a value; later members win."""

    ENGINE = "engine default"
    HARDWARE = "hardware"
    MODEL = "model"
    PROFILE = "profile"
    PRESET = "preset"
    USER = "user"
    OVERRIDE = "override"


class EngineKind(StrEnum):
    """The engine that runs a model; `auto` goes by the model's format."""

    AUTO = "auto"
    LLAMA_CPP = "llama.cpp"
    VLLM = "vllm"


class ServerChoice(StrEnum):
    """The build of llama.cpp's server that runs the model; `venv` is vLLM in its own environment."""

    AUTO = "auto"
    BUILT = "built"
    PREBUILT = "prebuilt"
    OWN = "own"
    VENV = "venv"

    def __repr__(self) -> str:
        """The value: pydantic lists the members of a Literal so where another was given."""
        return repr(self.value)


class EngineRef(Wire):
    """An engine by its id and its public name."""

    id: str
    name: str


MAIN_MEMORY = "memory"
"""The device of a `DeviceNeed` that is no GPU."""
ALL_ENGINES = "*"
"""In `instead_of`: every engine that runs."""


class DeviceNeed(Wire):
    """The memory that a start is planned to take of one device, in bytes; None where that is not known."""

    device: str = Field(description="`memory`, or the UUID of a GPU")
    bytes: int | None = None


class LaunchRequest(Command):
    """A request to start a model (an id or a path), a preset, or a preset with this file for its model.

    A preset's settings lie below `overrides`; its engine and its patches hold where none are given here.
    `instead_of` are ids or public names of engines that the start ends first: `*` is all that run, nothing
    given are those with its own public name.
    """

    model: str = ""
    preset: str | None = None
    engine: EngineKind = EngineKind.AUTO
    server: ServerChoice = ServerChoice.AUTO
    installation: str | None = Field(None, description="vLLM: which installed environment, e.g. 0.32.0-cpu")
    name: str | None = Field(None, description="public model id; taken from the model when absent")
    overrides: Overrides = Overrides.model_construct()
    keep: bool = Field(False, description="let the engine outlive the host")
    patches: PatchChoice = PatchChoice.model_construct()
    instead_of: tuple[str, ...] | None = None
    gpus: tuple[Annotated[str, Field(min_length=1, max_length=100)], ...] = Field(
        (), max_length=16, description="which GPUs, by UUID, number or name; the freest that suffice if none"
    )


class Setting(Spoken):
    """One resolved setting, the layer that set it, and why."""

    name: str
    value: Any
    layer: Layer
    why: Sentence = ""


class Finding(Spoken):
    """Something a check noticed; an `error` stops the start."""

    id: str
    severity: Severity
    message: Sentence
    reason: Reason | None = None
    fix: Fix | None = None
    evidence: dict[str, Any] = Field(default_factory=dict)


class LaunchPlan(Wire):
    """Everything that a start will do, frozen; `fingerprint` changes when the machine or the file does."""

    id: str
    fingerprint: str
    created_at: Seconds
    model: str
    model_path: str
    preset: str = ""
    name: str
    engine: str
    server: ServerChoice
    server_version: str
    argv: tuple[str, ...]
    environment: dict[str, str]
    settings: tuple[Setting, ...]
    streams: int
    context: int
    speculation: str
    keep: bool
    installation: str = Field("", description="vLLM: the environment that it runs in")
    patches: PlannedPatches | None = None
    choice: PatchChoice = Field(PatchChoice.model_construct(), description="the requested patches")
    findings: tuple[Finding, ...]
    kv_types: dict[str, str] = Field(
        default_factory=dict,
        description="KV types that the server offers, each with what it means for this model",
    )
    changes: tuple[str, ...] = Field((), description="what differs from the engine that it replaces")
    instead_of: tuple[EngineRef, ...] = Field((), description="engines that are ended first")
    beside: tuple[EngineRef, ...] = Field((), description="engines that go on")
    needs: tuple[DeviceNeed, ...] = ()
    gpus: tuple[str, ...] = Field((), description="the GPUs that it computes on, by UUID")
    gpus_named: bool = Field(False, description="the request named them")
    command: str = Field(description="the command line that does the same")
    consent: ConsentNeeded | None = Field(
        None, description="what files from somebody else ask for; it starts once a person consents"
    )

    @property
    def startable(self) -> bool:
        """True unless a finding stops the start."""
        return all(finding.severity is not Severity.ERROR for finding in self.findings)


class StartRequest(Command):
    """Start a plan; with `replace` off a plan that ends an engine is refused (conflict).

    `consent` is the digest of what the plan's `consent` asks for; it is remembered.
    """

    plan: str
    replace: bool = True
    consent: str | None = None


class BisectRequest(Command):
    """Find the patch that makes a start fail its check."""

    launch: LaunchRequest
    check: BisectCheck


class BisectVerdict(StrEnum):
    """The outcome of a bisection."""

    FOUND = "found"
    NOT_PATCHES = "not_patches"
    NO_FAILURE = "no_failure"


class BisectTrial(Spoken):
    """One start of a bisection, with these patches; `why` says what the check saw."""

    patches: tuple[str, ...]
    passed: bool
    why: Sentence
    reason: Reason | None = Field(None, description="of the problem, when the start itself failed")
    seconds: float


class BisectResult(Spoken):
    """The result of a bisection: each culprit is one patch, or patches that fail only together."""

    verdict: BisectVerdict
    sentence: Sentence
    culprits: tuple[tuple[str, ...], ...] = ()
    trials: tuple[BisectTrial, ...] = ()
    engine: str | None = Field(None, description="what runs now: a start that passed")
    command: str = Field("", description="the start without the culprits")
