"""Launch requests, and the frozen plan that each becomes."""

from enum import StrEnum
from typing import Any

from pydantic import Field

from engine_host.protocol.base import Command, Seconds, Severity, Wire
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.patches import BisectCheck, PatchChoice, PlannedPatches


class Layer(StrEnum):
    """Which layer set a value; later members win."""

    ENGINE = "engine default"
    HARDWARE = "hardware"
    MODEL = "model"
    PROFILE = "profile"
    PRESET = "preset"
    USER = "user"
    OVERRIDE = "override"


class EngineKind(StrEnum):
    """Which engine runs a model; `auto` goes by the model's format."""

    AUTO = "auto"
    LLAMA_CPP = "llama.cpp"
    VLLM = "vllm"


class ServerChoice(StrEnum):
    """Which build of llama.cpp's server runs the model; `venv` is vLLM in its own environment."""

    AUTO = "auto"
    BUILT = "built"
    PREBUILT = "prebuilt"
    OWN = "own"
    VENV = "venv"

    def __repr__(self) -> str:
        """The value: pydantic lists the members of a Literal so where another was given."""
        return repr(self.value)


class Overrides(Command):
    """Settings of one start; None keeps what the layers below say."""

    context: int | None = Field(None, ge=128, description="tokens for one stream")
    streams: int | None = Field(None, ge=1, le=256, description="requests answered in parallel")
    threads: int | None = Field(None, ge=1, le=1024)
    gpu_layers: int | None = Field(None, ge=-1)
    kv_type_k: str | None = None
    kv_type_v: str | None = None
    flash_attention: str | None = Field(None, pattern="^(auto|on|off)$")
    speculation: str | None = Field(None, description="off, draft-mtp or an n-gram kind the server offers")
    draft_tokens: int | None = Field(None, ge=1, le=16)
    embeddings: bool | None = None
    kv_cache_dtype: str | None = Field(None, description="vLLM: --kv-cache-dtype")
    dtype: str | None = Field(None, description="vLLM: data type of weights and activations")
    tensor_parallel: int | None = Field(None, ge=1, le=64, description="vLLM: GPUs that share each layer")
    gpu_memory: float | None = Field(None, gt=0, le=1, description="vLLM: share of the VRAM it may take")
    kv_cache_gib: float | None = Field(None, gt=0, description="vLLM: size of the KV cache in GiB")
    batched_tokens: int | None = Field(None, ge=16, description="vLLM: tokens of one step")
    eager: bool | None = Field(None, description="vLLM: neither torch.compile nor CUDA graphs")
    prefix_caching: bool | None = Field(None, description="vLLM: reuse the KV of equal beginnings")
    batch_invariant: bool | None = Field(None, description="vLLM: the same answer whatever runs beside it")
    dummy_weights: bool | None = Field(None, description="vLLM: random weights, for measuring a shape")
    tool_parser: str | None = Field(None, description="vLLM: --tool-call-parser")
    reasoning_parser: str | None = Field(None, description="vLLM: --reasoning-parser")
    extra_arguments: tuple[str, ...] = ()


LLAMA_CPP_ONLY = ("threads", "gpu_layers", "kv_type_k", "kv_type_v", "flash_attention")
"""Settings that mean nothing to other engines than llama.cpp."""
VLLM_ONLY = (
    "kv_cache_dtype",
    "dtype",
    "tensor_parallel",
    "gpu_memory",
    "kv_cache_gib",
    "batched_tokens",
    "eager",
    "prefix_caching",
    "batch_invariant",
    "dummy_weights",
    "tool_parser",
    "reasoning_parser",
)
"""Settings that mean nothing to llama.cpp."""


class LaunchRequest(Command):
    """What to start: a model (an id or a path), a preset, or a preset with this file for its model.

    A preset's settings lie below `overrides`; its engine and its patches hold where none are given here.
    """

    model: str = ""
    preset: str | None = None
    engine: EngineKind = EngineKind.AUTO
    server: ServerChoice = ServerChoice.AUTO
    installation: str | None = Field(None, description="vLLM: which installed environment, e.g. 0.32.0-cpu")
    name: str | None = Field(None, description="public model id; taken from the model when absent")
    overrides: Overrides = Overrides()
    keep: bool = Field(False, description="let the engine outlive the host")
    patches: PatchChoice = PatchChoice()


class Setting(Wire):
    """One resolved setting, the layer that set it, and why."""

    name: str
    value: Any
    layer: Layer
    why: str = ""


class Finding(Wire):
    """Something a check noticed; an `error` stops the start."""

    id: str
    severity: Severity
    message: str
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
    choice: PatchChoice = Field(PatchChoice(), description="what was asked of the patches")
    findings: tuple[Finding, ...]
    kv_types: dict[str, str] = Field(
        default_factory=dict,
        description="KV types that the server offers, each with what it means for this model",
    )
    changes: tuple[str, ...] = Field((), description="what differs from the engine running now")
    command: str = Field(description="the command line that does the same")

    @property
    def startable(self) -> bool:
        """Whether no finding stops the start."""
        return all(finding.severity is not Severity.ERROR for finding in self.findings)


class StartRequest(Command):
    """Start a plan; what runs is replaced, or with `replace` off is a reason to refuse (conflict)."""

    plan: str
    replace: bool = True


class BisectRequest(Command):
    """Find the patch that makes a start fail its check."""

    launch: LaunchRequest
    check: BisectCheck


class BisectVerdict(StrEnum):
    """What a bisection found."""

    FOUND = "found"
    NOT_PATCHES = "not_patches"
    NO_FAILURE = "no_failure"


class BisectTrial(Wire):
    """One start of a bisection, with these patches; `why` says what the check saw."""

    patches: tuple[str, ...]
    passed: bool
    why: str
    reason: Reason | None = Field(None, description="of the problem, when the start itself failed")
    seconds: Seconds


class BisectResult(Wire):
    """The result of a bisection: each culprit is one patch, or patches that fail only together."""

    verdict: BisectVerdict
    sentence: str
    culprits: tuple[tuple[str, ...], ...] = ()
    trials: tuple[BisectTrial, ...] = ()
    engine: str | None = Field(None, description="what runs now: a start that passed")
    command: str = Field("", description="the start without the culprits")
