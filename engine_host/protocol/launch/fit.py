"""The memory that a model needs on a machine: `/v1/fit` and `sndr fit`. Bytes and tokens throughout."""

from collections.abc import Collection
from enum import StrEnum
from typing import Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from engine_host.protocol.base import Command, Seconds, Severity, Wire
from engine_host.protocol.errors import Reason
from engine_host.protocol.language.spoken import Sentence, Spoken
from engine_host.protocol.launch.plans import EngineKind, EngineRef, ServerChoice


class PartSource(StrEnum):
    """The source of the bytes of a part.

    `catalogue` and `hub`: the sizes that it tells of the files, of which none was read here.
    """

    FILES = "files"
    CATALOGUE = "catalogue"
    HUB = "hub"
    FORMULA = "formula"
    MEASURED = "measured"
    ESTIMATE = "estimate"


class Verdict(StrEnum):
    """The verdict on a start; `unknown` where a figure for saying so is missing."""

    FITS = "fits"
    TIGHT = "tight"
    UNKNOWN = "unknown"
    DOES_NOT_FIT = "does_not_fit"
    CANNOT_RUN = "cannot_run"


class FitGpu(Command):
    """One GPU to compute for; `taken` is held by other processes and stays held."""

    name: str = ""
    total: int = Field(gt=0, le=1 << 50)
    taken: int = Field(0, ge=0, le=1 << 50)
    sm: str | None = Field(None, description="compute capability, such as 8.6")
    bandwidth: float | None = Field(None, gt=0, le=1e18, description="bytes a second")
    flops: float | None = Field(None, gt=0, le=1e24, description="dense 16-bit operations a second")
    pcie_lanes: int | None = Field(None, gt=0, le=16)
    power_share: float | None = Field(None, gt=0, le=2, description="power limit over the usual one")


def memory_of_patches(chosen: Collection[str]) -> dict[str, bool]:
    """The fields of a `FitRequest` that a start's patches change, by their ids."""
    return {
        "spared_layers": "turboquant-boundary-layers" not in chosen,
        "eight_bit_head": "draft-head-8-bit" in chosen,
        "grouped_attention": "turboquant-grouped-attention" in chosen,
    }


class FitRequest(Command):
    """A question to fit. With neither `gpus` nor `hardware` it is this machine.

    `hardware` names an entry of the catalogue, with a count before it where there are several: `2x rtx-3090`.
    With a `preset`, model, engine and settings are those that it resolves to there, but for what is set here.
    """

    model: str = ""
    preset: str | None = None
    engine: EngineKind = EngineKind.AUTO
    server: ServerChoice = ServerChoice.AUTO
    hardware: str | None = None
    gpus: tuple[FitGpu, ...] | None = None
    taken_gib: float | None = Field(
        None,
        ge=0,
        le=1 << 20,
        description="of each GPU of `hardware`, what others hold, such as a desktop, GiB",
    )
    cpu: bool = Field(False, description="the processor alone, in main memory")
    context: int | None = Field(None, gt=0, le=1 << 30)
    streams: int = Field(1, gt=0, le=4096)
    kv: str | None = Field(None, description="KV type: auto, fp8, turboquant_k8v4; f16, q8_0, q4_0 …")
    kv_v: str | None = Field(None, description="llama.cpp: type of the values where it is another")
    flash_attention: str | None = Field(
        None, pattern="^(auto|on|off)$", description="llama.cpp: off has the scores of a batch in memory"
    )
    tensor_parallel: int | None = Field(None, gt=0, le=64)
    gpu_memory: float = Field(0.9, gt=0, le=1)
    kv_cache_gib: float | None = Field(
        None, gt=0, le=1 << 20, description="vLLM on the processor: size of the KV cache"
    )
    batched_tokens: int | None = Field(None, gt=0, le=1 << 30)
    gpu_layers: int | None = Field(
        None, ge=-1, le=100_000, description="llama.cpp: layers on the GPUs, the output among them; -1 is all"
    )
    cpu_experts: int | None = Field(
        None,
        ge=0,
        le=100_000,
        description="llama.cpp: of so many of the first layers the experts stay in main memory",
    )
    speculation: bool = Field(False, description="the model's own drafting layers run")
    draft_tokens: int = Field(3, gt=0, le=64)
    prefix_caching: bool = True
    eager: bool = False
    embeddings: bool = Field(False, description="it answers with vectors or scores, and writes nothing")
    extra_arguments: tuple[str, ...] = Field((), description="of the engine; some change what it takes")
    spared_layers: bool = Field(
        True, description="vLLM: TurboQuant leaves the first and last layers of a dense model in 16 bits"
    )
    eight_bit_head: bool = Field(
        False,
        description="vLLM: drafts are chosen by a copy of the output matrix in 8 bits; unless it is "
        "said, so it is on Hopper GPUs, where that patch is on by default",
    )
    grouped_attention: bool = Field(
        False, description="vLLM: TurboQuant's grouped kernels, whose blocks hold at least 64 tokens"
    )
    bits: float | None = Field(None, gt=0, le=32, description="of a weight, for a shape without files")
    min_p: float | None = Field(None, ge=0, le=1, description="of the sampler that will be used")
    acceptance_length: float | None = Field(
        None, ge=1, le=1000, description="tokens that a step of speculation yields; the most without it"
    )
    grid: bool = Field(False, description="also compute the grid of contexts and streams")
    instead_of: tuple[str, ...] | None = Field(
        None, description="on this machine: engines that end first, as in a LaunchRequest"
    )

    use_gpus: tuple[str, ...] = Field(
        (), description="on this machine: these of its GPUs, by UUID, number or name"
    )

    def body(self) -> str:
        """Return what was set as JSON: what is off here may be on in the preset."""
        return self.model_dump_json(exclude_none=True)

    @model_serializer(mode="wrap")
    def _as_asked(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Only what was set: what is not said is the preset's, or the usual."""
        said: dict[str, Any] = serialize(self)
        return {name: value for name, value in said.items() if name in self.model_fields_set}


class FitPart(Spoken):
    """One part of a device's memory, with the band that it may lie in."""

    name: str
    size: int
    low: int
    high: int
    source: PartSource
    note: Sentence = ""


class DeviceFit(Wire):
    """The stacked parts on one GPU, or in main memory; `room` is what the engine may use of it."""

    name: str
    total: int
    taken: int
    room: int
    parts: tuple[FitPart, ...]
    needed: int
    free_after: int


class KvChoice(Spoken):
    """One KV type: what it costs and what it makes possible."""

    kv: str
    bytes_per_token: float
    verdict: Verdict
    largest_context: int
    note: Sentence = ""


class CurvePoint(Wire):
    """The need of the start on the fullest device at one context."""

    context: int
    needed: int
    room: int
    verdict: Verdict


class GridCell(Wire):
    """The verdict for so many streams of such a length."""

    context: int
    streams: int
    verdict: Verdict


class Change(Spoken):
    """Something to change so that it fits; `saves` in bytes on the fullest device."""

    id: str
    text: Sentence
    saves: int
    fits: bool
    option: str = ""
    asks: dict[str, bool | int | float | str] = Field({}, description="fields of a FitRequest that make it")
    gpus: int | None = Field(None, description="how many, where the change is their number")


class Advice(Spoken):
    """One rule of the advisor that applies, with what shows it."""

    id: str
    severity: Severity
    message: Sentence
    fix: Sentence
    evidence: Sentence


class Roofline(Spoken):
    """The ceilings of the hardware, tokens a second; None where a figure of it is not known.

    `decode` (one stream) and `decode_all_streams` are bounds for contexts that have just begun; those at
    depth are what is left of them when each has grown to `depth` tokens. `bytes_per_step` are read for one
    stream at that depth.
    """

    decode: float | None
    decode_all_streams: float | None
    prefill: float | None
    bytes_per_step: int
    why: Sentence = ""
    decode_at_depth: float | None = None
    all_streams_at_depth: float | None = None
    streams: int = 1
    depth: int | None = None
    tokens_per_step: float = Field(1, description="that are counted on: every draft, unless said otherwise")


KV_TOKENS = "KV tokens"
"""The one part of `Measured` whose figures are tokens and no bytes."""


class Measured(Wire):
    """A start that was compared: predicted and measured bytes of one part (tokens of `KV tokens`).

    `start` says which: streams, context, KV type.
    """

    at: Seconds
    engine: str
    version: str
    gpu: str
    patches: str
    model: str
    part: str
    predicted: int
    measured: int
    start: str = ""

    @property
    def error(self) -> float:
        """Predicted over measured, less one."""
        return self.predicted / self.measured - 1 if self.measured else 0.0


class Correction(Wire):
    """A correction learnt for one part on this machine: the factor on the prediction, from `n` starts."""

    part: str
    factor: float
    n: int


class FitReport(Spoken):
    """The answer."""

    model: str
    preset: str = ""
    variants: tuple[str, ...] = Field(
        (), description="other variants in the catalogue, where this one was chosen: the largest that fits"
    )
    engine: EngineKind
    kv: str
    context: int
    streams: int
    tensor_parallel: int
    verdict: Verdict
    reason: Reason | None = None
    why: Sentence = ""
    devices: tuple[DeviceFit, ...] = ()
    reserve: Sentence = Field("", description="what is left to a display and others, and what keeps it free")
    kv_bytes_per_token: float = 0
    kv_pool_tokens: int | None = None
    kv_blocks: int | None = None
    block_tokens: int | None = None
    largest_context: int = 0
    most_streams: int = Field(0, description="up to 256, the most that a start can be given")
    kv_choices: tuple[KvChoice, ...] = ()
    curve: tuple[CurvePoint, ...] = ()
    grid: tuple[GridCell, ...] = ()
    changes: tuple[Change, ...] = ()
    advice: tuple[Advice, ...] = ()
    roofline: Roofline | None = None
    corrections: tuple[Correction, ...] = ()
    unknown: tuple[str, ...] = Field((), description="what the model's files do not say")
    instead_of: tuple[EngineRef, ...] = Field((), description="engines here whose memory counts as free")
    beside: tuple[EngineRef, ...] = Field((), description="engines here that go on")


class ReadFromHub(Command):
    """Ask Hugging Face for a model's config.json and the sizes of its files, which leaves this machine."""

    repository: str = Field(description="organisation/model")
    revision: str = "main"


class HubModel(Wire):
    """A config that was read from Hugging Face; `model` is its name for a FitRequest, at this commit."""

    model: str
    repository: str
    revision: str
    endpoint: str
    read_at: Seconds
    size: int | None = Field(None, description="bytes of the weights, where the hub says it")


class HubPage(Wire):
    """Configs that were read before, newest first, and where another one would be asked for."""

    endpoint: str
    models: tuple[HubModel, ...]


class MeasuredPage(Wire):
    """Compared starts, newest first."""

    starts: tuple[Measured, ...]
