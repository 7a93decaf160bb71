"""Runs of the bench lab: what was asked, every sample, and the figures with what may be said of them."""

import shlex
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from engine_host.protocol.base import Command, Seconds, Share, Wire
from engine_host.protocol.bench.checks import Check
from engine_host.protocol.language import formed, tr
from engine_host.protocol.language.spoken import Sentence, Spoken

PAIRED_ROUNDS = 24
"""The rounds of two engines in turns where none are named; below seven nothing can be told."""


MOST_STREAMS = 256
"""The most requests at once that a sweep may ask."""


class WorkloadName(StrEnum):
    """The workloads that there are."""

    QUICK = "quick"
    CANONICAL = "canonical"
    PREFILL = "prefill"
    PREFILL_10K = "prefill-10k"
    PREFILL_90K = "prefill-90k"
    CONCURRENCY = "concurrency"
    SERVING = "serving"
    AGENTIC = "agentic"
    CONTEXT = "context"
    SOAK = "soak"
    SOAK_CONTINUOUS = "soak-continuous"


class Standing(StrEnum):
    """The worth of a figure: struck ones are shown crossed out, the others that are not measured as n/a."""

    PUBLISHED = "published"
    STRUCK = "struck"
    NOT_MEASURED = "not_measured"


class Gate(StrEnum):
    """A reason for which a figure is struck, or not given at all."""

    INCOHERENT = "incoherent"
    REQUESTS_FAILED = "requests_failed"
    NO_SAMPLES = "no_samples"
    NO_USAGE = "no_usage"
    ANSWER_SHORT = "answer_short"
    WINDOW_SHORT = "window_short"
    CACHE_HIT = "cache_hit"
    PROMPT_SHORT = "prompt_short"
    TOKENS_TOGETHER = "tokens_together"
    CHECK_FAILED = "check_failed"
    THROTTLED = "throttled"


class Quantity(StrEnum):
    """A measured quantity, in the order of a report."""

    DECODE = "decode"
    AGGREGATE = "aggregate"
    PREFILL = "prefill"
    TTFT = "ttft"
    ITL = "itl"
    TPOT = "tpot"
    TOTAL = "total"


class Sample(Wire):
    """One request, by the clock of whoever asked; seconds since it was sent. None is 'not measured'.

    `arrivals` are those of the parts of the answer that held text; `first` and `last` the first and the last
    of them. Tokens are those that the server counted.
    """

    part: str
    number: int
    round: int = 0
    warm: bool
    salt: str
    started: float = Field(description="seconds since the run began")
    first: float | None = None
    last: float | None = None
    total: float
    arrivals: tuple[float, ...] = ()
    aimed: int | None = Field(None, description="tokens that the prompt was made to have")
    max_tokens: int | None = Field(None, description="where it is not that of its part")
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    tokens: int | None = None
    drafted: int | None = Field(None, description="draft tokens, where the server tells them of a request")
    accepted: int | None = Field(None, description="those of them that were right")
    decoding: float | None = Field(None, description="seconds of decoding by the engine's own clock")
    found: bool | None = Field(None, description="the fact of its text stands in the answer")
    finish: str = ""
    text: str = ""
    fault: str = Field("", description="why the answer is no coherent text; empty where it is")
    unjudged: str = Field("", description="why nothing can be told of its text; empty where it can")
    error: str = ""


class Figure(Spoken):
    """The median over the measured requests (of an aggregate: over rounds), or why there is none.

    `low` and `high` bound the median (95 %; of five samples 93.75 %), `q1` and `q3` are the quartiles. Times
    in seconds, rates in tokens a second; decode is of one stream, aggregate of all that ran at once, by the
    wall clock.
    A published figure with a `gate` leaves out some samples, and `why` says which.
    """

    quantity: Quantity
    standing: Standing
    value: float | None = None
    low: float | None = None
    high: float | None = None
    q1: float | None = None
    q3: float | None = None
    p95: float | None = None
    p99: float | None = None
    samples: int = 0
    gate: Gate | None = None
    why: Sentence = ""


class PartResult(Wire):
    """One part of a workload: so many requests at once, warm ones first, and what they gave."""

    name: str
    streams: int
    warm: int
    measured: int
    max_tokens: int
    done: int = Field(description="measured requests that were answered")
    shared: bool = Field(False, description="its prompts begin alike, so a cache is no cheat")
    energy: float | None = Field(None, description="joules of the engine's GPUs for 1,000 generated tokens")
    figures: tuple[Figure, ...]

    @property
    def struck(self) -> bool:
        """True where a gate failed."""
        return any(figure.standing is Standing.STRUCK for figure in self.figures)


class Knee(Spoken):
    """The streams from which on more stop to pay; None where it was not reached, or cannot be told."""

    streams: int | None = None
    why: Sentence


class Rung(Spoken):
    """One length of a context ladder: was all of it taken, and was the fact in it found, judged apart.

    `found` is None where it says nothing, as behind a model that does not find it in a short text either.
    """

    part: str
    aimed: int
    tokens: int | None = None
    taken: bool
    found: bool | None = None
    why: Sentence = ""


class MemoryReading(Wire):
    """The memory of an engine's processes during a session of a soak, in bytes; None is not known."""

    at: float = Field(description="seconds since the run began")
    session: int
    resident: int
    gpu: int | None = None


class GpuRound(Wire):
    """The GPUs of an engine in a round; None is not measured.

    `energy` is in joules, of all of them together; `slowed` is the share of readings in which one was slowed
    down by heat or its board, not by its power limit; `clock` the median of its clock in MHz.
    """

    part: str
    round: int
    seconds: float
    gpus: tuple[int, ...]
    energy: float | None = None
    slowed: Share = 0.0
    slowed_by: tuple[str, ...] = ()
    clock: float | None = None


class DriftKind(StrEnum):
    """A thing that may get worse while an engine runs."""

    TTFT = "ttft"
    TPOT = "tpot"
    MEMORY = "memory"
    GPU_MEMORY = "gpu_memory"


class Drift(Wire):
    """The change from the first half of the sessions to the second: `change` is the share that it grew by.

    `low` to `high` is its 98 % interval over sessions. Times count against the median of their turn, so
    1 is as usual; memory is in bytes. One that is not `told` cannot be told from noise.
    """

    kind: DriftKind
    sessions: int
    first: float
    second: float
    change: float | None = None
    low: float | None = None
    high: float | None = None
    told: bool
    failed: bool = Field(description="more than 200 MiB, or less than 0.8 of the speed is left")


class LabEngine(Wire):
    """The subject of a run: an engine of this program with its plan, or an address."""

    address: str = Field(description="of a socket or a URL, without a password")
    model: str
    id: str = ""
    engine: str = ""
    version: str = ""
    model_path: str = ""
    context: int | None = Field(None, description="tokens of one stream")
    pid: int | None = None
    command: str = ""
    argv: tuple[str, ...] = ()
    settings: dict[str, str] = Field(default_factory=dict)
    patches: tuple[str, ...] = ()

    @property
    def slots(self) -> int | None:
        """The requests that it answers at a time; None where nobody knows."""
        streams = self.settings.get("streams", "")
        return int(streams) if streams.isdecimal() else None


class LabMachine(Wire):
    """The machine that asked; for an engine of this program also the one that answered."""

    program: str
    python: str
    system: str
    processor: str = ""
    gpus: tuple[str, ...] = ()
    driver: str = ""


class Measuring(Wire):
    """The process that is at a run or a sweep, by its number and when it began."""

    pid: int
    born: str


class LabCut(Wire):
    """The end of a run that was cut short: what is whole of it, and when its engine was idle.

    `idle` and the seconds after the cancel are by the engine's own counters, None where nobody asked them.
    One that is not idle was `running` that many requests after these seconds, or did not answer.
    """

    whole: tuple[str, ...] = Field((), description="parts of which every measured request was answered")
    cut: tuple[str, ...] = Field((), description="parts that were begun")
    missing: tuple[str, ...] = Field((), description="parts that were not begun")
    idle: bool | None = None
    after_cancel_seconds: float | None = None
    running: int | None = None

    @property
    def sentence(self) -> str:
        """The parts that are whole, and when the engine was idle."""
        return self._told(self._idle())

    @property
    def brief(self) -> str | None:
        """The parts where some are whole, and an engine still at work: enough for somebody who cancelled."""
        busy = None if self.idle else self._idle()
        return self._told(busy) if self.whole else busy

    def _told(self, idle: str | None) -> str:
        return tr(
            "Whole: {whole}[; cut short: {cut}][; not asked: {missing}].[ {idle}]",
            whole=list(self.whole) or tr("nothing"),
            cut=list(self.cut) or None,
            missing=list(self.missing) or None,
            idle=idle,
        )

    def _idle(self) -> str | None:
        if self.after_cancel_seconds is None:
            return None
        seconds = formed(self.after_cancel_seconds, ".2f")
        if self.idle:
            return tr(
                "The engine was idle {seconds} s after the cancel, by its own counters.", seconds=seconds
            )
        if self.running is None:
            return tr(
                "The engine did not say within {seconds} s after the cancel what it was still at work on.",
                seconds=seconds,
            )
        return tr(
            "Requests at work {seconds} s after the cancel, by the engine's own counters: {running}.",
            seconds=seconds,
            running=self.running,
        )


class LabRun(Wire):
    """A run with everything to repeat it; `complete` is False for one that was cut short."""

    id: str
    workload: WorkloadName
    started_at: Seconds
    seconds: float = 0.0
    seed: int
    complete: bool = False
    ended_by: str = ""
    measuring: Measuring | None = Field(None, description="who is at it now; of one that ended, None")
    cut: LabCut | None = Field(None, description="of one that was cut short")
    resumed_at: tuple[Seconds, ...] = Field((), description="when it was gone on with after it was cut short")
    engine: LabEngine
    machine: LabMachine
    sampling: dict[str, float] = Field(default_factory=dict)
    workload_hash: str = Field("", description="of all that is asked, but for how often")
    turns_with: str = Field("", description="the run that was measured in turns with this one")
    parts: tuple[PartResult, ...] = ()
    checks: tuple[Check, ...] = Field((), description="of its answers; one that failed strikes every figure")
    baseline: bool = Field(
        False, description="later runs of the same workload, model and kind of engine are held to it"
    )
    replaced: tuple[str, ...] = Field((), description="the oldest runs, which went to make room for it")
    stale: str = Field("", description="what moved since, where runs are listed; empty while it holds")
    knee: Knee | None = None
    rungs: tuple[Rung, ...] = Field((), description="of a context ladder")
    memory: tuple[MemoryReading, ...] = Field((), description="of a soak")
    gpu_rounds: tuple[GpuRound, ...] = Field((), description="where the engine has GPUs of this machine")
    drifts: tuple[Drift, ...] = Field((), description="of a soak")
    samples: tuple[Sample, ...] = ()

    @property
    def drifted(self) -> bool:
        """True where a soak failed: it grew or slowed down beyond noise, and by more than it may."""
        return any(drift.failed for drift in self.drifts)

    @property
    def subject(self) -> tuple[str, str, str, str]:
        """The subject of a run, the same for those held to one another: what is asked of which model where.

        Of an address nobody knows more than that: another one may be another server with a model's name.
        """
        engine = self.engine
        place = "" if engine.id else engine.address.rstrip("/")
        return self.workload_hash, engine.engine, engine.model, place

    @property
    def struck(self) -> bool:
        """True where a gate of any part failed."""
        return any(part.struck for part in self.parts)


Streams = Annotated[
    tuple[Annotated[int, Field(ge=1, le=MOST_STREAMS)], ...],
    Field(max_length=16, description="of a concurrency sweep: how many at once, step by step"),
]


class LabAsk(Command):
    """A run as the process that carries it out is told; `folder` is the data folder, where it is kept."""

    workload: WorkloadName
    folder: str
    seed: int | None = Field(None, ge=0, lt=1 << 53)
    engine: LabEngine
    machine: LabMachine
    socket: str | None = None
    against: LabEngine | None = Field(None, description="measured in turns with the engine: A B B A …")
    against_socket: str | None = None
    rounds: int | None = Field(None, ge=1, le=1000, description="measured ones, instead of the workload's")
    streams: Streams = ()
    only: tuple[str, ...] = ()
    resume: str | None = Field(None, description="a run that was cut short, which is gone on with")
    quiet: bool = False
    steps: bool = Field(False, description="for a program: a `LabStep` a line, a `LabKept` at the end")


class LabStep(Wire):
    """A round that was asked: the place of its part among all, and the share of the part that is done."""

    part: str
    number: int
    of: int
    progress: Share
    words: str


class LabKept(Wire):
    """The end of a run for a program: what was kept of it."""

    ids: tuple[str, ...]
    complete: bool
    ended_by: str = ""
    cut: LabCut | None = None


class RunBench(Command):
    """A run of an engine by its name or id, the only one where none is named; or of two in turns."""

    workload: WorkloadName
    engine: str | None = None
    against: str | None = Field(None, description="another engine: both are asked in turns, A B B A …")
    rounds: int | None = Field(
        None, ge=1, le=1000, description="measured ones of each part, instead of the workload's own"
    )
    seed: int | None = Field(None, ge=0, lt=1 << 53)
    streams: Streams = ()
    only: tuple[str, ...] = Field((), max_length=16, description="the parts of the workload that are asked")

    @property
    def command(self) -> str:
        """The command line that does the same."""
        seed = [] if self.seed is None else ["--seed", str(self.seed)]
        if self.against is None:
            named = [] if self.engine is None else ["--engine", self.engine]
            rounds = [] if self.rounds is None else ["--rounds", str(self.rounds)]
            only = [word for name in self.only for word in ("--part", name)]
            start = ["run", self.workload.value]
            if self.workload is WorkloadName.SOAK:
                start = ["soak"]
            elif self.workload is WorkloadName.SOAK_CONTINUOUS:
                start = ["soak", "--continuous"]
            elif self.workload is WorkloadName.CONTEXT or self.streams:
                start = ["sweep", self.workload.value, *map(str, self.streams)]
            return shlex.join(["sndr", "bench", *start, *named, *rounds, *seed, *only])
        rounds = ["--repeat", str(self.rounds or PAIRED_ROUNDS), "--workload", self.workload.value]
        return shlex.join(["sndr", "bench", "compare", self.engine or "", self.against, *rounds, *seed])


class LabRepair(Wire):
    """The outcome of repairing the file of runs: what could be read, and where the damaged file is."""

    runs: int
    without_samples: int = Field(description="of these runs, those whose samples could not be read")
    sweeps: int
    aside: str


class MarkBaseline(Command):
    """Makes later runs of its workload, model and engine be held to a run, or takes that back."""

    on: bool = True


class LabPage(Wire):
    """The runs of this machine without their samples, newest first, and files that could not be read."""

    seq: int = 0
    runs: tuple[LabRun, ...]
    unreadable: tuple[str, ...] = ()
