"""Bytes of the weights from the tensors that a model's files list, grouped by what reads them when."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from engine_host.fit.parts import Basis
from engine_host.fit.shapes.model import ModelShape, without
from engine_host.fit.shapes.quantization import Quantization
from engine_host.fit.shapes.weights import experts_chosen, matrices, weights_of
from engine_host.library.checkpoint import CheckpointInfo
from engine_host.library.gguf import GgufInfo
from engine_host.library.gguf_format import read_header
from engine_host.library.safetensors_format import read_shard

_BITS = {"F64": 64, "I64": 64, "U64": 64, "F32": 32, "I32": 32, "U32": 32, "F16": 16, "BF16": 16, "I16": 16}
_SMALL_BITS = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}
_EMBEDDING = re.compile(r"(^|\.)(embed_tokens|wte|word_embeddings|embeddings)\.|^token_embd\.")
_HEAD = re.compile(r"(^|\.)(lm_head|embed_out)\.|^output\.weight$")
_VISION = re.compile(
    r"(^|\.)(visual|vision_tower|vision_model|multi_modal_projector|mm_projector)\.|^(v|mm)\."
)
_EXPERTS = re.compile(r"\.experts\.|_exps\.")
_DRAFTING = re.compile(r"(^|\.)(mtp|nextn)\.")
# DeepSeek's and GLM's drafting layers, and llama.cpp's.
_TABLE_OF_DRAFTS = re.compile(r"\.(shared_head\.head|shared_head_head|embed_tokens)\.")
# Bits of a weight by the blocks of ggml-common.h; MXFP4 is of experts alone, all else beside them is Q8_0.
_GGUF_BITS = {
    "Q2": 2.625,
    "Q3": 3.4375,
    "IQ4_XS": 4.25,
    "Q4": 4.5,
    "IQ4_NL": 4.5,
    "Q5": 5.5,
    "Q6": 6.5625,
    "MXFP4": 8.5,
    "Q8": 8.5,
    "BF16": 16,
    "F16": 16,
}
_GGUF_KIND = re.compile(r"IQ4_XS|IQ4_NL|MXFP4|BF16|F16|(?<!I)Q[234568]")
_LAYER = re.compile(r"(?:^|\.)(?:layers|blk|h)\.([0-9]{1,9})\.")


@dataclass(frozen=True, slots=True)
class WeightBytes:
    """Bytes of a model's weights: `body` are the layers without their experts, and everything else.

    `drafter` are those of another model that drafts for it.
    """

    embedding: int
    head: int
    body: int
    experts: int
    drafting: int
    vision: int
    basis: Basis
    drafter: int = 0
    # Of `drafting`, output matrices and embeddings that the drafting layers bring themselves.
    drafting_tables: int = 0

    def loaded(self, *, drafting: bool, head: bool = True) -> int:
        """Bytes in memory: of the drafting layers where they run, of the head where text is written."""
        rest = self.embedding + self.body + self.experts + self.vision + self.drafter
        rest += self.head if head else 0
        return rest + (self.drafting if drafting else 0)

    def read(self, shape: ModelShape, streams: int = 1) -> int:
        """Bytes read for one step of so many streams: of the experts only those that some token chose.

        With tokens that choose independently, a share of 1 − (1 − used/count)^streams is chosen.
        """
        # Where the head is tied to the embedding, its table is read as the head.
        head = self.head or self.embedding
        return head + self.body + round(self.experts * experts_chosen(shape, streams))


def checkpoint_weights(
    info: CheckpointInfo,
    shape: ModelShape,
    bits: float | None = None,
    quantization: Quantization | None = None,
) -> WeightBytes:
    """The weights of a checkpoint: by its tensors, or by the formulas where it has none.

    Raises HostError with the reasons of `read_shard`.
    """
    if info.shape:
        return formula_weights(shape, bits, quantization)
    tensors = (
        (tensor.name, tensor.elements * _bits(tensor.dtype) // 8)
        for part in info.parts
        if part.suffix == ".safetensors"
        for tensor in read_shard(part).tensors
    )
    return _grouped(tensors, info.layers)


def gguf_weights(info: GgufInfo) -> WeightBytes:
    """The weights of a GGUF file, by its tensors. Raises HostError with the reasons of `read_header`."""
    tensors = ((tensor.name, tensor.size or 0) for part in info.parts for tensor in read_header(part).tensors)
    return _grouped(tensors, info.layers)


@dataclass(frozen=True, slots=True)
class TableBits:
    """Bits of a weight of the embedding and of the output matrix; one table that is both has the head's."""

    embedding: float
    head: float


def gguf_tables(quantization: str) -> TableBits | None:
    """The tables of a GGUF file as llama.cpp's quantizer makes them; None for a kind that is not known here.

    The head has 6 bits where the layers have less, and the embedding those of the layers (llama-quant.cpp).
    """
    kind = _GGUF_KIND.search(quantization.upper())
    if kind is None:
        return None
    few = _GGUF_BITS[kind[0]]
    return TableBits(few, max(few, _GGUF_BITS["Q6"]))


def formula_weights(
    shape: ModelShape,
    bits: float | None = None,
    quantization: Quantization | None = None,
    tables: TableBits | None = None,
) -> WeightBytes:
    """The weights of a shape without files, at `bits` a weight (None: as its config says).

    A quantised model keeps its embedding and its head in 16 bits, unless its config names the head or
    `tables` says it.
    Raises HostError(unsupported) for a shape whose feed-forward parts are not known.
    """
    if not shape.feed_forward and shape.experts is None:
        raise without("intermediate_size")
    found = weights_of(shape)
    element = shape.element if bits is None else bits / 8
    entries = shape.vocabulary * shape.hidden
    table = entries * (shape.element if bits is None else max(element, 2.0))
    experts = 0
    if shape.experts is not None:
        experts = shape.experts.layers * shape.experts.count * 3 * shape.hidden * shape.experts.width
    body = found.attention + found.gated_delta + found.feed_forward - experts
    saved = dict.fromkeys(("body", "experts", "drafting"), 0.0)
    head = 0.0 if shape.tied else table
    if quantization is not None and bits is None:
        for matrix in matrices(shape):
            if (few := quantization.bits(matrix.name)) is not None:
                saved[matrix.part] += matrix.weights * (element - few / 8)
        if (few := quantization.bits("lm_head")) is not None:
            head *= few / 8 / element
    embedding = table
    if tables is not None:
        table = entries * tables.head / 8
        embedding = table if shape.tied else entries * tables.embedding / 8
        head = 0.0 if shape.tied else table
    if shape.layer_tables:
        # Rows of these are read, and the whole of the table that is also the head.
        embedding, head = head + shape.layer_tables * shape.element, table
    return WeightBytes(
        embedding=round(embedding),
        head=round(head),
        body=round(body * element - saved["body"]),
        experts=round(experts * element - saved["experts"]),
        drafting=round(found.drafting * element - saved["drafting"]),
        vision=0,
        basis=Basis.FORMULA,
    )


def _grouped(tensors: Iterable[tuple[str, int]], layers: int | None) -> WeightBytes:
    groups = ("embedding", "head", "body", "experts", "drafting", "drafting_tables", "vision")
    size = dict.fromkeys(groups, 0)
    for name, amount in tensors:
        group = _group(name, layers)
        size[group] += amount
        if group == "drafting" and _TABLE_OF_DRAFTS.search(name):
            size["drafting_tables"] += amount
    return WeightBytes(**size, basis=Basis.FILES)


def _group(name: str, layers: int | None) -> str:
    layer = _LAYER.search(name)
    if _VISION.search(name):
        return "vision"
    # DeepSeek's form, and llama.cpp's, number drafting layers after the last layer of the model itself.
    if _DRAFTING.search(name) or (layer and layers is not None and int(layer[1]) >= layers):
        return "drafting"
    if _EXPERTS.search(name):
        return "experts"
    if _EMBEDDING.search(name):
        return "embedding"
    return "head" if _HEAD.search(name) else "body"


def _bits(dtype: str) -> int:
    return _BITS.get(dtype) or _SMALL_BITS.get(dtype, 8)
