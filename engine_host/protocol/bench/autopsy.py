"""The record of an engine that died: what was measured before its end, and what that says."""

from enum import StrEnum

from pydantic import Field

from engine_host.protocol.base import Page, Seconds, Wire
from engine_host.protocol.engines import Engine, RequestState
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.host import Gpu
from engine_host.protocol.language.spoken import Sentence, Spoken
from engine_host.protocol.launch.fit import FitReport
from engine_host.protocol.launch.plans import Finding

AUTOPSY_FORMAT = 1
"""The form of the files; one of another form is listed as unreadable."""


class RecordedSeries(Spoken):
    """One series before the end: a value each step from `first` on; a gap is None, never 0."""

    name: str
    unit: str
    title: Sentence
    first: Seconds
    values: tuple[float | None, ...]


class RecordedRequest(Wire):
    """One request without texts, key and conversation; `cut_off`: the end of the engine ended it."""

    id: str
    route: str
    client_name: str = ""
    stream: bool = False
    state: RequestState
    cut_off: bool = False
    created_at: Seconds
    ended_at: Seconds | None = None
    waited: float | None = None
    ttft: float | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    generated_tokens: int | None = None
    prefill_tokens: int | None = Field(None, description="tokens of the prompt that were read")
    prefill_of: int | None = Field(None, description="tokens of the whole prompt")
    decode_rate: float | None = None
    reason: Reason | None = None


class Autopsy(Wire):
    """The record that the host saved. Bytes, tokens and seconds; what looks like a key is taken out.

    `engine` is as it was when it had failed: plan, patches, buffers, last readings, problem, last lines of
    its log. `gpus` are those of the engine right after its end, so what is used there is held by others.
    `fit` is what its start needed and what would make it need less, counted on the machine without it.
    """

    format: int = AUTOPSY_FORMAT
    id: str
    at: Seconds
    program: str
    engine: Engine
    exit_code: int | None = None
    signal: str | None = Field(None, description="the name of the signal that ended it")
    oom_kills: int | None = Field(
        None,
        description="processes of this machine that the kernel's out-of-memory killer ended between the last"
        " readings and the end; null where the system does not count them",
    )
    seconds: float = Field(description="of the series, at most")
    step: float = Field(description="seconds of a step of the series")
    series: tuple[RecordedSeries, ...] = ()
    requests: tuple[RecordedRequest, ...] = Field((), description="the newest first")
    gpus: tuple[Gpu, ...] = ()
    no_gpu: Finding | None = Field(None, description="why no GPU was listed, and what to do")
    fit: FitReport | None = None


class Ending(StrEnum):
    """The kind of an engine's end."""

    MAIN_MEMORY = "main_memory"
    GPU_MEMORY = "gpu_memory"
    KILLED = "killed"
    CRASHED = "crashed"
    EXITED = "exited"
    REFUSED = "refused"


class HeldMemory(Spoken):
    """A part of memory; `source` says who told it."""

    what: Sentence
    bytes: int
    source: str


class CurveEnd(Spoken):
    """A series at its end: its value a minute before (or its first), its highest, and its last."""

    name: str
    title: Sentence
    unit: str
    before: float
    before_seconds: float = Field(description="how long before the last value")
    highest: float
    last: float


class Knob(Spoken):
    """A change that would have made the end less likely; `enough` where the fit counts that it fits."""

    text: Sentence
    saves: int | None = Field(None, description="bytes on the fullest device")
    enough: bool | None = None
    fix: Fix | None = None


class AutopsyReading(Spoken):
    """The reading of a record: made when it is opened, so that a newer program reads old ones better."""

    ending: Ending
    sentence: Sentence
    held: tuple[HeldMemory, ...] = ()
    curve: tuple[CurveEnd, ...] = ()
    knobs: tuple[Knob, ...] = ()
    not_measured: tuple[str, ...] = ()


class OpenedAutopsy(Wire):
    """One record with its reading."""

    record: Autopsy
    reading: AutopsyReading


class AutopsyEntry(Spoken):
    """One line of the list."""

    id: str
    at: Seconds
    engine: str
    name: str
    model: str
    ending: Ending
    reason: Reason | None = None
    sentence: Sentence
    bytes: int


class UnreadableAutopsy(Spoken):
    """A file of the folder that cannot be opened, and why."""

    id: str
    why: Sentence
    bytes: int | None = None


class AutopsyPage(Page):
    """The records of this host, the newest first."""

    seq: int
    folder: str
    autopsies: tuple[AutopsyEntry, ...]
    unreadable: tuple[UnreadableAutopsy, ...] = ()
