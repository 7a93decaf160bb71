"""The quality of a quantised KV cache: the same model with it and without, over the same text."""

from typing import Annotated

from pydantic import Field

from engine_host.protocol.base import Command, Page, Seconds, Share, Wire
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.errors import Problem
from engine_host.protocol.launch.plans import EngineKind, ServerChoice

ALL_LAYERS = "+all-layers"
"""Behind a TurboQuant type: the first and last layers are quantised too (`turboquant-boundary-layers`)."""


class MeasureQuality(Command):
    """Measure types of the KV cache against 16 bits; without a model the bundled one, and the usual types.

    `chunk`: vLLM reads a prompt in chunks, and a chunk sees its own tokens as they are: only what came before
    it is quantised.
    """

    model: str = ""
    engine: EngineKind = EngineKind.AUTO
    server: ServerChoice = ServerChoice.AUTO
    installation: str | None = None
    kv: tuple[str, ...] = Field((), max_length=16, description="q8_0, fp8, turboquant_k8v4+all-layers …")
    text: str | None = Field(None, description="a file in UTF-8; the bundled text when absent")
    positions: int = Field(1024, ge=16, le=1 << 20, description="tokens whose prediction is compared")
    context: int = Field(1024, ge=128, le=1 << 20, description="tokens of a window; its second half counts")
    top: int = Field(64, ge=2, le=1000, description="most likely tokens that are compared one by one")
    chunk: int = Field(128, ge=16, le=1 << 16, description="tokens of a chunk of a prompt, vLLM")
    answers: int = Field(8, ge=0, le=1000, description="greedy answers that are compared")
    answer_tokens: int = Field(128, ge=1, le=1 << 14)
    overrides: Overrides = Field(
        Overrides.model_construct(), description="settings that hold for every start"
    )
    gpus: tuple[Annotated[str, Field(min_length=1, max_length=100)], ...] = Field(
        (), max_length=16, description="which GPUs, as for a start; the freest that suffice if none"
    )


class NeedleFound(Wire):
    """A fact hidden at a depth of the context (0 is its beginning); `logprob` is the answer's, in nats."""

    depth: Share
    found: bool
    logprob: float


class KvQuality(Wire):
    """One type of the KV cache beside the reference, which is the first row and has no comparison.

    Perplexity over all positions. Divergence is KL(reference, this) in nats over the `top` tokens both list,
    with all others as one outcome: a lower bound. `same_best` is the share of positions with the same most
    likely token, `unlisted` that of tokens which were not among the listed: their probability is what is
    left, spread evenly. `agreed` are the lengths of the beginning that each greedy answer shares.
    """

    kv: str
    perplexity: float | None = None
    unlisted: Share = 0.0
    divergence: float | None = None
    divergence_99: float | None = None
    same_best: float | None = None
    needles: tuple[NeedleFound, ...] = ()
    agreed: tuple[int, ...] = ()
    seconds: float = 0.0
    how: str = Field("", description="where it is not the engine's own cache: by what it was computed")
    patches: tuple[str, ...] = ()
    argv: tuple[str, ...] = ()
    problem: Problem | None = None


class QualityReport(Wire):
    """One measurement with all that makes it again."""

    id: str
    at: Seconds
    model: str
    model_path: str
    engine: str
    server_version: str
    machine: str
    program: str
    text: str = Field(description="its name")
    text_sha256: str
    asked: MeasureQuality
    measured_positions: int
    rows: tuple[KvQuality, ...]
    seconds: float = 0.0
    command: str = ""


class QualityPage(Page):
    """Measurements of this machine, newest first."""

    seq: int
    reports: tuple[QualityReport, ...]
