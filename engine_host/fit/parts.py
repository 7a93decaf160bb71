"""Estimate a start of vLLM on each GPU, part by part, each with its band and the source of its figure.

vLLM is given a share of the GPU (`gpu_memory`). Before it makes its KV cache it takes off that share what it
has measured: the weights, the peak of one step, and what its libraries took after it had begun
(gpu_worker.Worker.determine_available_memory). What it does not see lies beyond the share: the CUDA context
and NCCL's buffers, which are there before it begins, and the prefill of gated-delta layers, which its
measuring step leaves out. Figures were fitted to starts on an H200 (docs/fit.md).
"""

import math
import re
from dataclasses import dataclass
from enum import StrEnum

from engine_host.fit.kv import PREFIXES_COMPARED, TURBOQUANT, heads_on_gpu
from engine_host.fit.pool import Pool, vllm_pool
from engine_host.fit.shapes.model import ModelShape
from engine_host.fit.shapes.weights import weights_of
from engine_host.protocol.language import ntr, tr

MIB = 2**20
GIB = 2**30
# The name of the part: vLLM does not count it as the model's.
DRAFT_HEAD = "draft head"
# Measured on an H200 with vLLM 0.26.0 and torch 2.11 (docs/fit.md).
_LIBRARIES = 230 * MIB
_CONTEXT = 527 * MIB
_GRAPHS = 140 * MIB
_CUBLAS = 32 * MIB
_COMPILED = 1.55
# Bytes of one logit at the peak of sampling, by whether it is the older runner: that one sorts in its
# measuring step (16 and 32 bits, its place in 64, a mask), the newer one leaves that out.
_LOGIT = {True: 15, False: 2}


class Basis(StrEnum):
    """The source of a size."""

    FILES = "files"
    CATALOGUE = "catalogue"
    HUB = "hub"
    FORMULA = "formula"
    MEASURED = "measured"
    ESTIMATE = "estimate"


# Of weights: what their size is the sum of.
WEIGHTS_FROM = {
    Basis.FILES: tr("every tensor that is loaded"),
    Basis.CATALOGUE: tr(
        "the catalogue's shape, and the sizes that it tells of the files; none was read here"
    ),
    Basis.HUB: tr("its config and the sizes of its files on Hugging Face; no weights were read"),
    Basis.FORMULA: tr("by the formulas of its layers"),
}
# Files hold headers and a tokenizer, too, which matters where only their sizes are known.
_TENSORS = 0.98


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes of one thing on one GPU; it lies between `low` and `high`.

    `beyond`: vLLM does not take it off its share of the GPU, and it is there all the same.
    """

    name: str
    bytes: int
    low: int
    high: int
    basis: Basis
    about: str = ""
    beyond: bool = False


def tensors_at_least(size: int, basis: Basis) -> int:
    """The least bytes of tensors in files of this size together; all of it where the tensors were read."""
    return round(_TENSORS * size) if basis in {Basis.CATALOGUE, Basis.HUB} else size


@dataclass(frozen=True, slots=True)
class Start:
    """The settings that a start's memory depends on; `file_bytes`: the weights, where there are files.

    `embeddings`: vLLM's pooling runner, which measures its pooler in place of the sampler and has no buffers
    of one; it schedules one batch at a time (0.32: PoolingRunner, VllmConfig).
    """

    context: int
    streams: int
    kv_cache_dtype: str = "auto"
    tp: int = 1
    draft_tokens: int = 0
    mtp: bool = False
    prefix_caching: bool = True
    batched_tokens: int = 2048
    eager: bool = False
    spared_layers: bool = True
    hybrid_manager: bool | None = None
    eight_bit_head: bool = False
    grouped_attention: bool = False
    embeddings: bool = False
    gpu_memory: float = 0.92
    build: str = "cuda"
    file_bytes: int | None = None
    version: str = "0.32.0"

    def pool(self, shape: ModelShape) -> Pool:
        """Return the KV block pool of this start."""
        return vllm_pool(
            shape,
            self.kv_cache_dtype,
            build=self.build,
            tp=self.tp,
            draft_tokens=self.draft_tokens,
            mtp=self.mtp,
            prefix_caching=self.keeps_states(shape),
            batched_tokens=self.batched_tokens,
            spared_layers=self.spared_layers,
            hybrid_manager=self.hybrid_manager,
            grouped_attention=self.grouped_attention,
            batches=1 if self.embeddings else 2,
        )

    def keeps_states(self, shape: ModelShape) -> bool:
        """Return True if states are kept for prefixes that come again.

        Of a hybrid that drafts only where answers after a hit were compared; everywhere else the patch
        hybrid-speculation-prefix-cache, which is on by default, switches prefix caching off.
        """
        if not (self.draft_tokens and (shape.gated_delta or shape.mamba)):
            return self.prefix_caching
        compared = self.kv_cache_dtype not in TURBOQUANT or self.kv_cache_dtype in PREFIXES_COMPARED
        newer = not is_before(self.version, (0, 32))
        return self.prefix_caching and compared and newer and self.build == "cuda"

    def old_runner(self, shape: ModelShape) -> bool:
        """Return True if vLLM runs this with its first model runner (VllmConfig.use_v2_model_runner).

        0.26 does so with hybrids and mixtures; 0.32 with none that it has the newer one for.
        """
        return is_before(self.version, (0, 32)) and bool(shape.gated_delta or shape.mamba or shape.experts)


def is_before(version: str, other: tuple[int, int]) -> bool:
    """Return True if a version such as 0.26.0 is older than (major, minor); False if it is not a number."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return found is not None and (int(found[1]), int(found[2])) < other


def fixed_parts(shape: ModelShape, start: Start) -> tuple[Part, ...]:
    """Everything on one GPU but the KV cache."""
    return (
        _weights(shape, start),
        _activations(shape, start),
        _banded(
            "libraries", _LIBRARIES, 0.6, 1.6, tr("kernels and libraries that are loaded while it starts")
        ),
        *_graphs(shape, start),
        *_stream_buffers(shape, start),
        *_draft_head(shape, start),
        _banded("CUDA context", _CONTEXT, 0.6, 1.5, tr("the driver's own; beyond vLLM's share"), beyond=True),
        *_gated_delta(shape, start),
        *_nccl(start),
    )


def _weights(shape: ModelShape, start: Start) -> Part:
    if start.file_bytes is not None:
        size = math.ceil(start.file_bytes / start.tp)
        return Part("weights", size, size, round(1.03 * size), Basis.FILES, tr("size of the files by GPU"))
    found = weights_of(shape)
    number = found.total - (0 if start.mtp else found.drafting)
    size = math.ceil(number * shape.element / start.tp)
    about = tr(
        "{number:.2f} billion parameters of {element} bytes",
        number=number / 1000000000.0,
        element=shape.element,
    )
    return Part("weights", size, round(0.98 * size), round(1.05 * size), Basis.FORMULA, about)


def _draft_head(shape: ModelShape, start: Start) -> tuple[Part, ...]:
    """A byte for each number of the output matrix, and four for each token's step (draft-head-8-bit)."""
    if not (start.mtp and start.eight_bit_head):
        return ()
    size = math.ceil(shape.vocabulary / start.tp) * (shape.hidden + 4)
    about = tr("a copy of the output matrix in 8 bits, by which drafts are chosen")
    return (Part(DRAFT_HEAD, size, size, size, Basis.FORMULA, about),)


def _activations(shape: ModelShape, start: Start) -> Part:
    """The peak of one step, of which the widest layer or the logits decide, and cuBLAS's own workspace.

    What Inductor compiles holds more than the same step without it: by a half in the middle of the shapes
    measured, and up to twice as much.
    """
    values = start.batched_tokens * step_width(shape, start.tp) * shape.element
    # A step of verification has logits for each draft, too.
    logits = start.streams * (1 + start.draft_tokens) * shape.vocabulary * _LOGIT[start.old_runner(shape)]
    about = tr(
        "a step of {batched_tokens:,} tokens, logits of {streams}",
        batched_tokens=start.batched_tokens,
        streams=_streams(start.streams),
    )
    if start.embeddings:
        # In 32 bits as they are pooled, and once more as they are brought to length 1.
        logits = 2 * 4 * start.streams * shape.hidden + start.batched_tokens * shape.hidden * shape.element
        about = tr(
            "a step of {batched_tokens:,} tokens, vectors of {streams}",
            batched_tokens=start.batched_tokens,
            streams=_streams(start.streams),
        )
    logits += start.batched_tokens * _workspaces(shape, start.tp) * shape.element
    size = _CUBLAS + max(values, logits)
    if start.eager:
        return _banded("activations", size, 0.9, 1.25, about)
    return _banded("activations", _CUBLAS + max(_COMPILED * values, logits), 0.6, 1.6, about)


def step_width(shape: ModelShape, tp: int = 1) -> int:
    """Values that are alive at one time for each token of a step, in the widest layer, on one GPU.

    A feed-forward part holds its two products and what comes of them, beside the layer's input, its output
    and the residual; decoders with gated-delta layers keep one more. Gated attention holds queries, their
    gates and results. A mixture's two workspaces (TritonExperts.workspace_shapes) stay from layer to layer.
    """
    residuals = (5 if shape.gated_delta else 4) * shape.hidden
    queries = math.ceil(shape.heads * shape.head_dim / tp)
    keys = heads_on_gpu(shape, tp) * shape.head_dim
    attention = 4 * shape.hidden + (7 if shape.output_gate else 4) * queries + 3 * keys
    wide = shape.experts.shared_width if shape.experts else shape.feed_forward
    return _workspaces(shape, tp) + max(attention, residuals + 3 * math.ceil(wide / tp))


def _workspaces(shape: ModelShape, tp: int) -> int:
    experts = shape.experts
    if experts is None:
        return 0
    width = math.ceil(experts.width / tp)
    return experts.used * (max(width, shape.hidden) + max(2 * width, shape.hidden))


def _gated_delta(shape: ModelShape, start: Start) -> tuple[Part, ...]:
    """Estimate the chunked prefill of gated-delta layers: about ten values alive for each token and head.

    27B shape, a step of 4,128 tokens: about 500 MiB live (reported by users of single 24 GB cards). vLLM's
    measuring step leaves these kernels out, so that its share has no memory for them.
    """
    delta = shape.gated_delta
    if delta is None:
        return ()
    heads = math.ceil(delta.value_heads / start.tp)
    size = start.batched_tokens * heads * delta.value_dim * shape.element * 10
    about = tr("chunks of a prompt; beyond vLLM's share")
    return (_banded("gated-delta prefill", size, 0.5, 2, about, beyond=True),)


def _graphs(shape: ModelShape, start: Start) -> tuple[Part, ...]:
    """CUDA graphs; the newer runner of 0.26 does not foresee them, and captures them beyond its share."""
    if start.eager or start.build == "cpu":
        return ()
    beyond = is_before(start.version, (0, 32)) and not start.old_runner(shape)
    about = tr("captured batch sizes; beyond vLLM's share") if beyond else tr("captured batch sizes")
    return (_banded("CUDA graphs", _GRAPHS, 0.5, 5, about, beyond=beyond),)


def _stream_buffers(shape: ModelShape, start: Start) -> tuple[Part, ...]:
    """Estimate the newer runner's buffers of streams × vocabulary: a count and two masks (PenaltiesState)."""
    if start.old_runner(shape) or start.build == "cpu" or start.embeddings:
        return ()
    size = start.streams * shape.vocabulary * (4 + 2 / 8)
    beyond = is_before(start.version, (0, 32))
    counts = ntr(
        "token counts for penalties, {n} stream", "token counts for penalties, {n} streams", start.streams
    )
    about = tr("{part}; beyond vLLM's share", part=counts) if beyond else counts
    return (_banded("stream buffers", size, 0.9, 1.2, about, beyond=beyond),)


def _nccl(start: Start) -> tuple[Part, ...]:
    if start.tp == 1:
        return ()
    about = tr("buffers between the GPUs; beyond vLLM's share")
    return (_banded("NCCL", 350 * MIB, 0.6, 2, about, beyond=True),)


def _streams(number: int) -> str:
    return ntr("{n} stream", "{n} streams", number)


def _banded(name: str, size: float, low: float, high: float, about: str, *, beyond: bool = False) -> Part:
    return Part(
        name, round(size), math.floor(size * low), math.ceil(size * high), Basis.ESTIMATE, about, beyond
    )
