"""What a start of vLLM takes on each GPU, part by part, each with its band and where it is from."""

import math
from dataclasses import dataclass
from enum import StrEnum

from engine_host.fit.kv import Pool, vllm_pool
from engine_host.fit.shape import ModelShape
from engine_host.fit.weights import weights_of

MIB = 2**20
GIB = 2**30


class Basis(StrEnum):
    """Where a size is from."""

    FILES = "files"
    FORMULA = "formula"
    MEASURED = "measured"
    ESTIMATE = "estimate"


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes of one thing on one GPU; it lies between `low` and `high`."""

    name: str
    bytes: int
    low: int
    high: int
    basis: Basis
    about: str = ""


@dataclass(frozen=True, slots=True)
class Start:
    """The settings that a start's memory depends on; `file_bytes`: the weights, where there are files."""

    context: int
    streams: int
    kv_cache_dtype: str = "auto"
    tp: int = 1
    draft_tokens: int = 0
    mtp: bool = False
    prefix_caching: bool = True
    batched_tokens: int = 2048
    eager: bool = False
    gpu_memory: float = 0.92
    build: str = "cuda"
    file_bytes: int | None = None

    def pool(self, shape: ModelShape) -> Pool:
        """How vLLM cuts the cache of this start."""
        return vllm_pool(
            shape,
            self.kv_cache_dtype,
            build=self.build,
            tp=self.tp,
            draft_tokens=self.draft_tokens,
            mtp=self.mtp,
            # vLLM's own guard: with speculation a hybrid has no prefix cache.
            prefix_caching=self.prefix_caching and not (self.draft_tokens and shape.gated_delta),
            batched_tokens=self.batched_tokens,
        )


def fixed_parts(shape: ModelShape, start: Start) -> tuple[Part, ...]:
    """Everything on one GPU but the KV cache."""
    return (
        _weights(shape, start),
        _activations(shape, start),
        *_gated_delta(shape, start),
        *_graphs(start),
        Part("CUDA context", 550 * MIB, 350 * MIB, 800 * MIB, Basis.ESTIMATE, "driver, kernels, libraries"),
        *_nccl(start),
    )


def _weights(shape: ModelShape, start: Start) -> Part:
    if start.file_bytes is not None:
        size = math.ceil(start.file_bytes / start.tp)
        return Part("weights", size, size, round(1.03 * size), Basis.FILES, "size of the files by GPU")
    found = weights_of(shape)
    number = found.total - (0 if start.mtp else found.drafting)
    size = math.ceil(number * shape.element / start.tp)
    about = f"{number / 1e9:.2f} billion weights of {shape.element} bytes"
    return Part("weights", size, round(0.98 * size), round(1.05 * size), Basis.FORMULA, about)


def _activations(shape: ModelShape, start: Start) -> Part:
    """The peak of one step: the widest layer's values for each token of it, and the logits of each stream."""
    wide = shape.feed_forward
    if shape.experts is not None:
        wide = max(wide, shape.experts.used * shape.experts.width + shape.experts.shared_width)
    values = start.batched_tokens * (4 * shape.hidden + 3 * math.ceil(wide / start.tp)) * shape.element
    # Float32 logits, once as they come and once sorted for sampling; verification has some for each draft.
    logits = 2 * start.streams * (1 + start.draft_tokens) * shape.vocabulary * 4
    size = values + logits
    about = f"a step of {start.batched_tokens} tokens, logits of {start.streams} streams"
    return Part("activations", size, size // 2, 2 * size, Basis.ESTIMATE, about)


def _gated_delta(shape: ModelShape, start: Start) -> tuple[Part, ...]:
    """What the chunked prefill of gated-delta layers keeps alive: about ten values a token and head.

    27B shape, a step of 4,128 tokens: about 500 MiB live (reported by users of single 24 GB cards).
    """
    delta = shape.gated_delta
    if delta is None:
        return ()
    heads = math.ceil(delta.value_heads / start.tp)
    size = start.batched_tokens * heads * delta.value_dim * shape.element * 10
    return (Part("gated-delta prefill", size, size // 2, 2 * size, Basis.ESTIMATE, "chunks of a prompt"),)


def _graphs(start: Start) -> tuple[Part, ...]:
    if start.eager or start.build == "cpu":
        return ()
    return (Part("CUDA graphs", 600 * MIB, 200 * MIB, 1500 * MIB, Basis.ESTIMATE, "captured batch sizes"),)


def _nccl(start: Start) -> tuple[Part, ...]:
    if start.tp == 1:
        return ()
    return (Part("NCCL", 350 * MIB, 200 * MIB, 700 * MIB, Basis.ESTIMATE, "buffers between the GPUs"),)
