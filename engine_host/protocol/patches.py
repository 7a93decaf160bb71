"""Patches of the overlay: the catalogue, what a start chose, and what took effect in which process."""

from enum import StrEnum
from typing import Literal, Self

from pydantic import Field, model_validator

from engine_host.protocol.base import Command, Page, Query, Seconds, Wire
from engine_host.protocol.errors import Problem
from engine_host.protocol.language.spoken import Sentence, Spoken


class PatchKind(StrEnum):
    """The way in which an operation enters a process; a hook is the least fragile."""

    TEXT = "text"
    REBIND = "rebind"
    HOOK = "hook"


class Risk(StrEnum):
    """The risk of a patch."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class PatchOutcome(StrEnum):
    """The outcome of a patch or an operation in one process; `pending`: its module was not imported yet."""

    APPLIED = "applied"
    SKIPPED = "skipped"
    FAILED = "failed"
    REVERTED = "reverted"
    PENDING = "pending"


class PatchReason(StrEnum):
    """The reasons for which a patch is not applied; docs/OVERLAY.md explains each."""

    ANCHOR_AMBIGUOUS = "anchor_ambiguous"
    ANCHOR_MISSING = "anchor_missing"
    CONFLICT = "conflict"
    LEFT_OUT = "left_out"
    MODULE_MISSING = "module_missing"
    NOT_DEFAULT = "not_default"
    OUT_OF_RANGE = "out_of_range"
    RAISED = "raised"
    REQUIREMENT_SKIPPED = "requirement_skipped"
    SHADOW_UNWRITABLE = "shadow_unwritable"
    SIGNATURE_CHANGED = "signature_changed"
    SWITCHED_OFF = "switched_off"
    TARGET_MISSING = "target_missing"
    TOO_LATE = "too_late"
    UPSTREAM_MERGED = "upstream_merged"
    WRONG_ARCHITECTURE = "wrong_architecture"
    WRONG_GPU = "wrong_gpu"
    WRONG_KV_CACHE = "wrong_kv_cache"
    WRONG_PLATFORM = "wrong_platform"
    WRONG_SPECULATION = "wrong_speculation"


class ProcessRole(StrEnum):
    """The role of a process of vLLM."""

    API_SERVER = "APIServer"
    ENGINE_CORE = "EngineCore"
    WORKER = "Worker"
    HELPER = "Helper"


class PatchEvidence(Wire):
    """One measurement that a patch stands on; None is 'not measured'."""

    metric: str
    before: float | None = None
    after: float | None = None
    unit: str = ""
    n: int | None = None
    machine: str = ""
    pin: str = ""
    command: str = ""


class PatchOperation(Wire):
    """One thing that a patch does; `diff` is against the source of the engine that was asked about."""

    kind: PatchKind
    target: str = Field(description="module, module:qualname, or the extension point")
    vllm: str | None = Field(None, description="the versions that this operation is for, PEP 440")
    diff: str = Field("", description="unified diff for a text edit, the replacement's source for the others")


class AppliesTo(Wire):
    """The circumstances in which a patch applies; an empty list does not narrow."""

    vllm: str
    platforms: tuple[str, ...] = ()
    sm: str | None = None
    kv_cache_dtypes: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    speculation: tuple[str, ...] = ()


class Patch(Wire):
    """One patch of the catalogue; `switch` is what settings say of it now."""

    id: str
    title: str
    family: str
    kinds: tuple[PatchKind, ...]
    problem: str
    upstream: tuple[str, ...] = Field((), description="addresses of issues and pull requests")
    applies_to: AppliesTo
    requires: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    required: bool = False
    required_with_speculation: bool = False
    default: bool = True
    default_sm: str | None = Field(None, description="it is on by default on these GPUs alone")
    risk: Risk
    risk_note: str = ""
    retire_when: str = ""
    evidence: tuple[PatchEvidence, ...] = ()
    folder: str = ""
    switch: Literal["on", "off"] = "on"
    switched_by: str = Field("", description="what decided: the patch, its family, all, or default")


class PatchFault(Wire):
    """A patch folder that cannot be used."""

    folder: str
    problem: Problem


class PatchPage(Page):
    """The catalogue in order of application."""

    seq: int
    patches: tuple[Patch, ...]
    faults: tuple[PatchFault, ...] = ()


class CheckVerdict(StrEnum):
    """The verdict of preflight on a patch and one vLLM."""

    APPLIES = "applies"
    OUT_OF_RANGE = "out_of_range"
    ANCHOR_DRIFT = "anchor_drift"
    CODE_BROKEN = "code_broken"
    SIGNATURE_CHANGED = "signature_changed"
    TARGET_MISSING = "target_missing"
    UPSTREAM_MERGED = "upstream_merged"


class OperationCheck(Spoken):
    """Preflight of one operation; `nearest` is a diff from the anchor to the most similar text there."""

    kind: PatchKind
    target: str
    verdict: CheckVerdict
    reason: PatchReason | None = None
    detail: Sentence = ""
    nearest: str = ""


class PatchCheck(Wire):
    """Preflight of one patch against one vLLM."""

    patch: str
    verdict: CheckVerdict
    reason: PatchReason | None = None
    operations: tuple[OperationCheck, ...] = ()
    needed_by: tuple[str, ...] = Field((), description="patches that would fall with this one")


class CheckPage(Page):
    """Preflight of the whole catalogue; `source` is the venv or the wheel that was read."""

    seq: int
    vllm: str
    source: str
    checks: tuple[PatchCheck, ...]


class PatchDetail(Wire):
    """One patch with what it touches in one vLLM (`vllm` is None when none is installed)."""

    seq: int
    patch: Patch
    vllm: str | None = None
    operations: tuple[PatchOperation, ...] = ()
    check: PatchCheck | None = None


class PatchChoice(Command):
    """The choice of patches for a start, beside the settings; ids, families, or `all`."""

    off: tuple[str, ...] = ()
    on: tuple[str, ...] = Field((), description="also those that are not on by default")
    only: tuple[str, ...] | None = Field(
        None, description="nothing but these, those they need, the required ones"
    )


class PatchDecision(Spoken):
    """A patch that is not part of a start, and the reason."""

    patch: str
    reason: PatchReason
    detail: Sentence = ""


class PlannedPatches(Wire):
    """The patches of a plan in order of application; `digest` names the bundle and salts the caches."""

    digest: str
    chosen: tuple[str, ...]
    left_out: tuple[PatchDecision, ...] = ()
    required: tuple[str, ...] = ()


class OperationResult(Wire):
    """The outcome of one operation in one process; hashes are SHA-256 of the module's source."""

    kind: PatchKind
    target: str
    outcome: PatchOutcome
    reason: PatchReason | None = None
    before: str | None = None
    after: str | None = None
    ms: float | None = None
    detail: str = ""


class PatchProbe(Wire):
    """The answer of one process about a patch; `hits` is None for a patch that does not count."""

    at: Seconds
    live: bool
    why: str = ""
    hits: int | None = None


class PatchResult(Wire):
    """The outcome of one patch in one process; an applied one may say in `detail` what it chose."""

    patch: str
    outcome: PatchOutcome
    reason: PatchReason | None = None
    detail: str = ""
    values: dict[str, tuple[int, ...]] = Field(
        default_factory=dict, description="numbers of that choice, as head_sizes of the kernels"
    )
    operations: tuple[OperationResult, ...] = ()
    ms: float | None = None
    probe: PatchProbe | None = None


class ProcessPatches(Wire):
    """The ledger of one process."""

    pid: int
    role: ProcessRole
    rank: int | None = None
    since: Seconds
    overhead_ms: float | None = Field(None, description="what the overlay cost this process so far")
    results: tuple[PatchResult, ...] = ()
    unreadable: int = Field(0, description="lines of the ledger that could not be read")

    def count(self, outcome: PatchOutcome) -> int:
        """Count the patches with this outcome here."""
        return sum(result.outcome is outcome for result in self.results)


class EnginePatches(Wire):
    """The apply summary of one engine, by process."""

    seq: int
    engine: str
    planned: PlannedPatches | None
    processes: tuple[ProcessPatches, ...] = ()
    summary: str = Field("", description="one line: API server 3 applied · EngineCore 5 applied, 1 skipped …")


class BisectCheck(Command):
    """The check that judges a start: a built-in one or a command that exits with 0 when all is well."""

    builtin: Literal["starts", "answers", "same_answer"] | None = None
    command: tuple[str, ...] | None = Field(
        None, description="run with SNDR_ENDPOINT (base URL), SNDR_SOCKET and SNDR_MODEL set"
    )
    folder: str | None = Field(None, description="where the command runs; the person's home without it")
    prompt: str = "Say hello."

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.builtin is None) is not bool(self.command):
            raise ValueError("give either a built-in check or a command that is not empty")
        return self


class SwitchPatches(Command):
    """Switch patches in the settings: ids, families, or `all`; `default` takes the person's switch back."""

    names: tuple[str, ...]
    to: Literal["on", "off", "default"]


class PatchQuery(Query):
    """The vLLM that is meant: a version, an environment, a venv or a wheel; else the one that would run."""

    vllm: str | None = None
