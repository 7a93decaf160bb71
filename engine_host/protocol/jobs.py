"""Jobs: anything that takes longer than a second."""

from enum import StrEnum
from typing import Any

from pydantic import Field

from engine_host.protocol.base import Page, Seconds, Share
from engine_host.protocol.errors import Problem
from engine_host.protocol.language.spoken import Sentence, Spoken


class JobKind(StrEnum):
    """The kind of work that a job does."""

    BENCH_PROFILE = "bench.profile"
    BENCH_RUN = "bench.run"
    BENCH_SWEEP = "bench.sweep"
    BENCH_VERIFY = "bench.verify"
    ENGINE_BUILD = "engine.build"
    ENGINE_COMPARE = "engine.compare"
    ENGINE_INSTALL = "engine.install"
    ENGINE_PIN = "engine.pin"
    ENGINE_REMOVE = "engine.remove"
    ENGINE_START = "engine.start"
    ENGINE_STOP = "engine.stop"
    GPU_POWER = "gpu.power"
    HOST_FETCH = "host.fetch"
    HOST_INSTALL = "host.install"
    HOST_SEND = "host.send"
    HOST_STAGE = "host.stage"
    HOST_UNINSTALL = "host.uninstall"
    HOST_UPDATE = "host.update"
    KERNEL_PROOF = "kernel.proof"
    KV_QUALITY = "kv.quality"
    MODEL_DOWNLOAD = "model.download"
    MODEL_VERIFY = "model.verify"
    PATCH_BISECT = "patch.bisect"
    PRESET_VERIFY = "preset.verify"
    ROUTE_CUTOVER = "route.cutover"
    ROUTE_PROMOTE = "route.promote"
    ROUTE_ROLLBACK = "route.rollback"
    SERVICE_ACTION = "service.action"
    SERVICE_INSTALL = "service.install"
    SERVICE_REMOVE = "service.remove"


class JobState(StrEnum):
    """The state of a job; the last three are final."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class JobStep(Spoken):
    """The step a job is at; `progress` is the share of this step, 0 to 1, None when it cannot be told."""

    number: int
    of: int
    name: Sentence
    detail: Sentence = ""
    progress: Share | None = None

    @property
    def done(self) -> float:
        """The share of all steps that is done, 0 to 1."""
        return min(1.0, max(0.0, (self.number - 1 + (self.progress or 0.0)) / max(1, self.of)))


class Job(Spoken):
    """Long work: its steps so far, and its result or its failure."""

    id: str
    kind: JobKind
    title: Sentence
    touches: str = Field(description="the thing it changes; jobs on one thing queue behind each other")
    machines: tuple[str, ...] = Field((), description="other machines that it is about, beside `touches`")
    state: JobState
    behind: str | None = Field(None, description="the job that this one waits for")
    step: JobStep | None = None
    created_at: Seconds
    started_at: Seconds | None = None
    ended_at: Seconds | None = None
    result: dict[str, Any] = Field(default_factory=dict)
    error: Problem | None = None
    undone: Sentence = Field("", description="what a cancelled job undid")
    left: Sentence = Field("", description="what a cancelled job left behind")
    command: str = Field("", description="the command line that does the same")

    @property
    def ended(self) -> bool:
        """Tell whether the job is in a final state."""
        return self.state in {JobState.DONE, JobState.FAILED, JobState.CANCELLED}


class JobPage(Page):
    """Jobs, newest first."""

    seq: int
    jobs: tuple[Job, ...]
