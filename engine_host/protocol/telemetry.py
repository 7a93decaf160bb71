"""Measured series: the machine's memory, the engine's KV cache and its rates."""

from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, Field, PlainSerializer

from engine_host.protocol.base import Query, Seconds, Times, Wire
from engine_host.protocol.language.spoken import Sentence, Spoken

RECORDED_PREFIX = "recorded."
"""Before the names of series that a recorded trace plays: nothing takes them for this machine's."""


class Sample(Wire):
    """One reading of many series at one time; a series that was not measured is absent."""

    at: Seconds
    values: dict[str, float]


class Series(Spoken):
    """One series; `unit` is one of bytes, share, tokens, tokens/s, requests, celsius, watts."""

    name: str
    unit: str
    title: Sentence
    source: str = Field(description="where the number comes from")
    peaks: bool = Field(False, description="a step is its highest value, else its mean")
    at: Times = ()
    values: tuple[float | None, ...] = ()


class TelemetryPage(Wire):
    """Series over a range; a gap is None, never 0."""

    seq: int
    step: float
    series: tuple[Series, ...]


class MemoryPart(Wire):
    """One part of what a process holds; bytes, None where it is not measured."""

    name: str
    memory: int | None
    source: str = ""


class MemoryUser(Wire):
    """A process that holds memory, or an engine with all of its processes; bytes, None where nobody tells.

    `parts` are those of an engine of this host; `engine` is its id, empty for a process of somebody else.
    """

    pid: int
    name: str
    memory: int | None
    engine: str = ""
    parts: tuple[MemoryPart, ...] = ()


class MemoryDevice(Wire):
    """The memory of a GPU, or RAM, and who holds it; `rest` is used and of nobody who is listed."""

    name: str
    total: int
    used: int
    users: tuple[MemoryUser, ...]
    rest: int | None = Field(None, description="None where somebody is listed without saying how much")
    recorded: bool = Field(False, description="of a trace that is played, not of this machine")


class MemoryPage(Wire):
    """The holders of memory now: GPUs first, then RAM."""

    seq: int
    at: Seconds
    devices: tuple[MemoryDevice, ...]


class EnergySource(StrEnum):
    """The source of an energy: the GPU's own counter, or its power summed up over time."""

    COUNTER = "counter"
    POWER = "power"


class GpuEnergy(Wire):
    """The energy of one GPU in a time: joules, and for how many seconds of it something was measured."""

    name: str
    joules: float
    source: EnergySource
    seconds: float
    recorded: bool = Field(False, description="of a trace that is played, not of this machine")


class EnergyPage(Wire):
    """The energy of the GPUs in a time, idle or not, and the tokens that engines generated in it.

    `per_thousand` is joules for a thousand of them, by all GPUs of this machine together; None without both.
    """

    seq: int
    since: Seconds
    until: Seconds
    gpus: tuple[GpuEnergy, ...]
    joules: float | None
    generated_tokens: int | None
    per_thousand: float | None


class EnergyQuery(Query):
    """From a time on; without it the last hour."""

    since: float | None = Field(None, ge=-1e12, le=1e12, allow_inf_nan=False)


def _split(names: object) -> object:
    return [name for name in names.split(",") if name] if isinstance(names, str) else names


class TelemetryQuery(Query):
    """Series by name (`a,b`; none are all) from a time on, in steps of at least so many seconds."""

    names: Annotated[tuple[str, ...], BeforeValidator(_split), PlainSerializer(",".join)] = ()
    since: float | None = Field(None, ge=-1e12, le=1e12, allow_inf_nan=False)
    step: float | None = Field(None, le=1e9, allow_inf_nan=False)


class MarkKind(StrEnum):
    """The kind of an event that is marked on the time axis of the graphs."""

    STARTED = "started"
    READY = "ready"
    STOPPED = "stopped"
    DIED = "died"
    OUT_OF_MEMORY = "out_of_memory"
    PATCH_FAILED = "patch_failed"
    BENCH_BEGUN = "bench_begun"
    BENCH_ENDED = "bench_ended"
    CUT_OVER = "cut_over"


class Mark(Spoken):
    """An event on the time axis of the graphs; one that came again has its count and its last time.

    `code` tells what it is of its kind and engine, whatever its text says: a patch and why it failed.
    """

    id: str
    at: Seconds
    kind: MarkKind
    text: Sentence
    engine: str = Field("", description="the engine that it is about, whose log says more; empty for none")
    code: str = ""
    times: int = 1
    last_at: Seconds | None = None
    processes: tuple[int, ...] = Field((), description="those of the engine in which it happened")


class MarkPage(Wire):
    """Marks of a time, the oldest first."""

    seq: int
    marks: tuple[Mark, ...]


class MarkQuery(Query):
    """Marks from a time on, and up to another."""

    since: float | None = Field(None, ge=-1e12, le=1e12, allow_inf_nan=False)
    until: float | None = Field(None, ge=-1e12, le=1e12, allow_inf_nan=False)
