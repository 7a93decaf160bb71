"""Launch requests, and the frozen plan that each becomes."""

from enum import StrEnum
from typing import Any

from pydantic import Field

from engine_host.protocol.base import Command, Seconds, Severity, Wire
from engine_host.protocol.errors import Fix, Reason


class Layer(StrEnum):
    """Which layer set a value; later members win."""

    ENGINE = "engine default"
    HARDWARE = "hardware"
    MODEL = "model"
    PROFILE = "profile"
    PRESET = "preset"
    USER = "user"
    OVERRIDE = "override"


class ServerChoice(StrEnum):
    """Which build of llama.cpp's server runs the model."""

    AUTO = "auto"
    BUILT = "built"
    PREBUILT = "prebuilt"
    OWN = "own"


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
    extra_arguments: tuple[str, ...] = ()


class LaunchRequest(Command):
    """What to start; `model` is a model id or a path."""

    model: str
    server: ServerChoice = ServerChoice.AUTO
    name: str | None = Field(None, description="public model id; taken from the model when absent")
    overrides: Overrides = Overrides()
    keep: bool = Field(False, description="let the engine outlive the host")


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
    """Start a plan, replacing what runs."""

    plan: str
