"""Running engines: their state, what they measure, and the requests they answer."""

from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, Field

from engine_host.protocol.base import Command, Page, Query, Seconds, Wire
from engine_host.protocol.errors import Problem
from engine_host.protocol.language.spoken import Sentence, Spoken
from engine_host.protocol.launch.plans import LaunchPlan, ServerChoice

_DECISIVE = 6
COLD_START = (
    "A first start reads the whole model from the disk; vLLM compiles and captures graphs besides. Minutes "
    "are normal, and the next start finds most of it in a cache. If it fails, the reason will stand here."
)
"""Why a start that takes its time is well."""


class EngineState(StrEnum):
    """The state of an engine; `ready` means verified by a token it generated."""

    UNLOADED = "unloaded"
    PREPARING = "preparing"
    STARTING = "starting"
    READY = "ready"
    BUSY = "busy"
    DRAINING = "draining"
    STOPPING = "stopping"
    FAILED = "failed"


class StageTime(Spoken):
    """One stage of a start; `ended_at` is None while it runs."""

    name: str
    detail: Sentence = ""
    started_at: Seconds
    ended_at: Seconds | None = None


class Latency(Wire):
    """One of the engine's own histograms since its start; seconds; quantiles interpolated in its buckets.

    A quantile in the first bucket is only known to be below the bucket's bound: then `p50` is None and
    `p50_below` holds that bound.
    """

    name: str
    count: int
    mean: float | None = None
    p50: float | None = None
    p95: float | None = None
    p50_below: float | None = None
    p95_below: float | None = None


class Readings(Wire):
    """The newest readings of an engine; None is 'not measured'. Rates in tokens a second."""

    at: Seconds
    slots_total: int | None = None
    slots_busy: int | None = None
    slots_reading: int | None = Field(None, description="busy slots that have generated nothing yet")
    requests_waiting: int | None = None
    kv_tokens: int | None = None
    kv_capacity: int | None = None
    kv_cached: int | None = Field(
        None, description="tokens of it that no running request uses, kept for prompts that begin alike"
    )
    prompt_tokens_total: int | None = None
    generated_tokens_total: int | None = None
    timed_prompt_tokens: float | None = Field(
        None, description="prompt tokens of the requests in the next field"
    )
    timed_prompt_seconds: float | None = Field(None, description="the engine's own time for these prompts")
    prefill_rate: float | None = Field(
        None, description="as the engine timed the prompts since the last reading"
    )
    decode_rate: float | None = Field(
        None, description="of all streams, over the time they worked since the last reading"
    )
    draft_tokens_total: int | None = None
    draft_accepted_total: int | None = None
    acceptance_length: float | None = None
    kv_usage: float | None = Field(None, description="share of the KV blocks in use, 0 to 1")
    kv_block: int | None = Field(
        None, description="tokens of a KV block; a prompt's beginning is found again up to the end of one"
    )
    requests_running: int | None = None
    prefix_queries_total: int | None = Field(None, description="prompt tokens looked up in the prefix cache")
    prefix_hits_total: int | None = Field(None, description="prompt tokens found in the prefix cache")
    acceptance_by_position: tuple[float, ...] = Field((), description="share of drafts accepted at 1, 2, …")
    preemptions_total: int | None = None
    latencies: tuple[Latency, ...] = ()
    memory: int | None = Field(None, description="resident bytes of the engine's processes")
    memory_of_files: int | None = Field(
        None, description="those of them that are pages of files, which the system counts as free"
    )


class Verification(Wire):
    """The checks before the engine was called ready; seconds from the start of the process."""

    model_listed: bool
    token_generated: bool
    speculation_moved: bool | None = None
    context: int | None = Field(None, description="tokens of one stream, as the engine says")
    ready_after: float


class Attention(Wire):
    """The way in which an engine computes attention, as its log told it; names are the engine's own."""

    backend: str = Field("", description="empty where the log names none")
    others: tuple[str, ...] = Field((), description="which would have worked too, in the engine's order")
    passed_over: tuple[str, ...] = Field((), description="which it prefers, and could not use")
    asked: bool = Field(False, description="the start asked for one by name; the engine did not choose")
    why: str = Field("", description="the line that tells why a better one was passed over")


class Engine(Wire):
    """One engine: its plan, its process and how it does."""

    id: str
    name: str
    engine: str
    server: ServerChoice
    server_version: str
    state: EngineState
    plan: LaunchPlan
    job: str | None = None
    pid: int | None = None
    keep: bool = False
    adopted: bool = False
    created_at: Seconds
    ready_at: Seconds | None = None
    ended_at: Seconds | None = None
    stages: tuple[StageTime, ...] = ()
    verified: Verification | None = None
    readings: Readings | None = None
    problem: Problem | None = None
    last_lines: tuple[str, ...] = Field((), description="the end of the log of a failed engine")
    buffers: dict[str, int] = Field(default_factory=dict, description="bytes, as the engine printed them")
    attention: Attention | None = Field(None, description="null where its log tells nothing of it")

    @property
    def was_refused(self) -> bool:
        """Tell whether nothing of it ever ran: its start was refused before a first stage."""
        return self.state is EngineState.FAILED and self.ready_at is None and not self.stages

    @property
    def ready_after(self) -> float | None:
        """The seconds from the start of its process until it had answered: the one length of a start."""
        return self.verified.ready_after if self.verified is not None else None

    @property
    def context(self) -> int:
        """The tokens of one stream: as the engine says, and until it does as they were planned."""
        said = self.verified.context if self.verified is not None else None
        return self.plan.context if said is None else said

    @property
    def told_line(self) -> str | None:
        """The line of the log that told why it ended; None where none did."""
        told = str(self.problem.evidence.get("line", "")) if self.problem is not None else ""
        if not told:
            return None
        # It may have come before the lines that are kept.
        return next((line for line in self.last_lines if told in line), told)

    @property
    def decisive_lines(self) -> tuple[str, ...]:
        """The line of the log that told why it ended, with those beside it; where none did, its last ones."""
        told = self.told_line
        if told is None:
            return self.last_lines[-_DECISIVE:]
        if told not in self.last_lines:
            return (told, *self.last_lines[1 - _DECISIVE :])
        place = max(0, self.last_lines.index(told) - 2)
        return self.last_lines[place : place + _DECISIVE]

    @property
    def marked_lines(self) -> tuple[str, ...]:
        """The decisive lines, with a mark before the one that told why it ended."""
        told = self.told_line
        if told is None:
            return self.decisive_lines
        return tuple(f"{'>' if line == told else ' '} {line}" for line in self.decisive_lines)


class EnginePage(Page):
    """Engines, running ones first."""

    seq: int
    engines: tuple[Engine, ...]
    last: Engine | None = Field(
        None, description="the newest that was ready once, of this run of the host or one before"
    )


class RequestState(StrEnum):
    """The state of a request; `loading` is the wait for a model that this request, or another one, loads."""

    LOADING = "loading"
    WAITING = "waiting"
    PREFILL = "prefill"
    DECODE = "decode"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Request(Wire):
    """One request to the endpoint; no text of it is kept. Times in seconds, rates in tokens a second."""

    id: str
    engine: str = Field(description="the id of who answers; empty while its model is being loaded")
    model: str
    provider: str | None = Field(
        None, description="the host and port outside this program that it was sent to; null for an engine"
    )
    route: str
    client: str = Field("", description="the client's User-Agent")
    client_name: str = Field("", description="the program by its headers, with its version")
    key: str | None = Field(None, description="the name of its API key")
    conversation: str | None = Field(None, description="the conversation's id, a salted hash")
    captured: bool = Field(False, description="its texts are kept in memory, to be looked at")
    stream: bool = False
    state: RequestState
    place: int | None = Field(None, description="its place among those that wait, from 1")
    prefill_tokens: int | None = Field(None, description="tokens of the prompt that the engine has by now")
    prefill_of: int | None = Field(None, description="tokens of the whole prompt, while it is read")
    created_at: Seconds
    waited: float | None = None
    ttft: float | None = None
    ended_at: Seconds | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    generated_tokens: int | None = Field(
        None,
        description="as the engine counts them; while it writes, those until now, where it tells",
    )
    pieces: int | None = Field(
        None,
        description="pieces of its stream that came, where no tokens are told: a token, several, or none",
    )
    piece_rate: float | None = Field(None, description="pieces a second; a rate of tokens is decode_rate")
    prefill_seconds: float | None = Field(None, description="the engine's own time for the prompt")
    decode_rate: float | None = None
    draft_tokens: int | None = None
    draft_accepted: int | None = None
    finish: str | None = None
    problem: Problem | None = None

    @property
    def destination(self) -> str:
        """The model as it was asked for, and where the request went when it left this program."""
        return f"{self.model} at {self.provider}" if self.provider else self.model


class RequestPage(Page):
    """Requests, newest first."""

    seq: int
    requests: tuple[Request, ...]


class ServerInfo(Wire):
    """One llama.cpp server that can run models here, or why it cannot."""

    choice: ServerChoice
    present: bool
    version: str = ""
    path: str = ""
    kv_types: tuple[str, ...] = ()
    speculation: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    problem: Problem | None = None


class SpeedComparison(Wire):
    """Two servers measured in one run on one model; decode tokens a second, medians with spread."""

    model: str
    at: Seconds
    repeats: int
    rows: tuple["SpeedRow", ...]


class SpeedRow(Wire):
    """One server at one number of streams; `low` and `high` are the extremes of the repeats."""

    server: ServerChoice
    server_version: str
    streams: int
    decode_rate: float
    low: float
    high: float
    ttft: float


class Backend(StrEnum):
    """The hardware that a build of llama.cpp computes on; `auto` is the GPU where there is an NVIDIA one."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"
    VULKAN = "vulkan"


DRAIN_SECONDS = 10.0
"""What answers at work have to end where nobody says how long: a person who stops an engine waits for it."""


class StopEngine(Query):
    """The way in which an engine is to end: drained, or with `now` (1, true) at once."""

    # Anything else drains: a word that is not understood must not cut requests off.
    now: Annotated[bool, BeforeValidator(lambda said: str(said).lower() in {"1", "true"})] = False
    wait: float = Field(
        default=DRAIN_SECONDS, ge=0, le=86400, description="seconds that answers at work have to end"
    )


class ServerBuild(Command):
    """The wishes for a build of llama.cpp."""

    backend: Backend = Backend.AUTO


class Installation(Wire):
    """One environment of vLLM of ours: installed, or that could be installed; sizes in bytes."""

    id: str = Field(description="pin and build, e.g. 0.32.0-cpu")
    version: str
    build: str = Field(description="cuda or cpu")
    present: bool
    recommended: bool = False
    path: str = ""
    size: int | None = None
    needs_free: int = Field(description="free bytes that an install wants")
    download: int | None = None
    tree_hash: str = Field("", description="SHA-256 over vLLM's own files when it was installed")
    repairs: tuple[str, ...] = Field((), description="what the install had to mend in it, by package")
    installed_at: Seconds | None = None
    leftover: int | None = Field(
        None, description="bytes that a cut-off install or removal left; the next install frees them"
    )
    changing: bool = Field(False, description="a host installs or removes it right now")
    problem: Problem | None = None


class InstallationPage(Page):
    """vLLM's environments on this machine."""

    seq: int
    installations: tuple[Installation, ...]


class PinVllm(Command):
    """The vLLM that starts shall use where none is named: a version or an id, `automatic` for the best.

    With `back` it is the one before the last change; with neither, a plan says how it is now.
    """

    version: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    back: bool = False


class PinPlan(Wire):
    """The `pin` as it will be and as it is `now`, the one `before`, and each change as a line of a diff."""

    pin: str
    now: str
    before: str | None = None
    installs: bool = False
    changes: tuple[str, ...] = ()


class ServerPage(Page):
    """The servers known here, which of them runs next, and the last measured comparison."""

    seq: int
    servers: tuple[ServerInfo, ...]
    next_start: ServerChoice | None
    comparison: SpeedComparison | None = None
