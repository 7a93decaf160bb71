"""Read a GGUF model: architecture, size, quantisation, context, KV geometry, speculation, licence."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeGuard

from engine_host.core.errors import HostError
from engine_host.library.gguf_format import MAX_TENSORS, TENSOR_TYPES, Header, Tensor, Value, read_header
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr

# llama.h, enum llama_ftype; 1024 is the flag for "guessed from the tensors".
FILE_TYPES: dict[int, str] = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S",
    12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K",
    19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL",
    26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S", 29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16",
    36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4", 39: "NVFP4", 40: "Q1_0", 41: "Q2_0",
}  # fmt: skip

_SPLIT = re.compile(r"^(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf$", re.IGNORECASE)
_SSM = ("conv_kernel", "inner_size", "state_size", "time_step_rank", "group_count")
# Architectures whose models only embed, whatever their metadata says of pooling.
_EMBEDDING_ONLY = ("bert", "t5encoder", "gemma-embedding")
# llama.h, enum llama_pooling_type.
_POOLING = ("none", "mean", "cls", "last", "rank")
# A template that takes tools reads the variable of this name.
_TOOLS = re.compile(r"\btools\b")
MAX_PARTS = 1_000
# Letters of a name that a file gives itself.
_LONGEST_LABEL = 200


@dataclass(frozen=True, slots=True)
class GgufInfo:
    """A model as its files describe it; sizes in bytes, context in tokens, None where the file is silent."""

    path: Path
    parts: tuple[Path, ...]
    version: int
    architecture: str
    name: str
    parameters: int
    quantization: str
    size: int
    tensor_bytes: int
    kind: str = "model"
    context: int | None = None
    layers: int | None = None
    embedding_length: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    fewest_kv_heads: int | None = None
    head_dim: int | None = None
    value_dim: int | None = None
    full_attention_interval: int | None = None
    sliding_window: int | None = None
    ssm: dict[str, int] = field(default_factory=dict)
    mtp_layers: int = 0
    experts: int | None = None
    experts_used: int | None = None
    feed_forward: int | None = None
    expert_feed_forward: int | None = None
    vocabulary: int | None = None
    chat_template: bool = False
    tools: bool = False
    tokenizer: str | None = None
    tokenizer_pre: str | None = None
    fim: bool = False
    fim_ids: tuple[int, ...] = ()
    embedding_only: bool = False
    pooling: str = ""
    causal: bool = True
    licence: str | None = None

    @property
    def hybrid(self) -> bool:
        """True if some of its layers keep a state of fixed size instead of a KV cache."""
        return bool(self.ssm)

    @property
    def attention_layers(self) -> int | None:
        """The number of layers that keep a KV cache; the others of a hybrid keep a state of fixed size."""
        if self.layers is None:
            return None
        interval = self.full_attention_interval
        if interval and self.ssm:
            return self.layers // interval
        return self.layers


def read_gguf(path: Path) -> GgufInfo:
    """Reads what a GGUF model is, all its parts together, without loading it.

    Takes 1 to 200 ms: the vocabulary is walked over, the tensors are not touched. Raises `HostError` with
    the reasons of `gguf_format.read_header`, and `model_file_missing` where a part is not there.
    """
    header = read_header(path)
    parts = _parts(path, header)
    headers = [header]
    for part in parts[1:]:
        headers.append(read_header(part))
        if sum(len(one.tensors) for one in headers) > MAX_TENSORS:
            raise _damaged(
                path, tr("its parts list more than {max_tensors} tensors", max_tensors=MAX_TENSORS)
            )
    tensors = tuple(tensor for one in headers for tensor in one.tensors)
    architecture = _label(header, "general.architecture") or "unknown"
    layers = _count(header, f"{architecture}.block_count")
    mtp = _count(header, f"{architecture}.nextn_predict_layers") or 0
    width = _count(header, f"{architecture}.embedding_length")
    heads = _count(header, f"{architecture}.attention.head_count")
    head_dim = _count(header, f"{architecture}.attention.key_length")
    if head_dim is None and width and heads:
        head_dim = width // heads
    return GgufInfo(
        path=path,
        parts=parts,
        version=header.version,
        architecture=architecture,
        name=_label(header, "general.name") or _stem(path),
        parameters=sum(tensor.elements for tensor in tensors),
        quantization=_quantization(header, tensors),
        size=sum(one.file_size for one in headers),
        tensor_bytes=sum(tensor.size or 0 for tensor in tensors),
        kind=_label(header, "general.type") or "model",
        context=_count(header, f"{architecture}.context_length"),
        layers=None if layers is None else max(layers - mtp, 0),
        embedding_length=width,
        heads=heads,
        kv_heads=_count(header, f"{architecture}.attention.head_count_kv") or heads,
        fewest_kv_heads=_fewest(header, f"{architecture}.attention.head_count_kv"),
        head_dim=head_dim,
        value_dim=_count(header, f"{architecture}.attention.value_length") or head_dim,
        full_attention_interval=_count(header, f"{architecture}.full_attention_interval"),
        sliding_window=_count(header, f"{architecture}.attention.sliding_window"),
        ssm={
            key: value for key in _SSM if (value := _count(header, f"{architecture}.ssm.{key}")) is not None
        },
        mtp_layers=mtp if any(".nextn." in tensor.name for tensor in tensors) else 0,
        experts=_count(header, f"{architecture}.expert_count"),
        experts_used=_count(header, f"{architecture}.expert_used_count"),
        feed_forward=_count(header, f"{architecture}.feed_forward_length"),
        expert_feed_forward=_count(header, f"{architecture}.expert_feed_forward_length"),
        vocabulary=header.lengths.get("tokenizer.ggml.tokens")
        or _count(header, f"{architecture}.vocab_size"),
        chat_template=bool(_text(header, "tokenizer.chat_template")),
        tools=_TOOLS.search(_text(header, "tokenizer.chat_template") or "") is not None,
        tokenizer=_label(header, "tokenizer.ggml.model"),
        tokenizer_pre=_label(header, "tokenizer.ggml.pre"),
        fim="tokenizer.ggml.fim_mid_token_id" in header.values
        or "tokenizer.ggml.middle_token_id" in header.values,
        fim_ids=_fim_ids(header),
        embedding_only=_embeds_only(header, architecture),
        pooling=_pooling(header, architecture),
        causal=_causal(header, architecture),
        licence=_label(header, "general.license") or _label(header, "general.license.name"),
    )


def split_of(path: Path) -> tuple[int, int] | None:
    """Gives (part, parts) of a file named `…-00001-of-00003.gguf`, counted from 1; else None."""
    found = _SPLIT.match(path.name)
    return (int(found["number"]), int(found["count"])) if found else None


def _parts(path: Path, header: Header) -> tuple[Path, ...]:
    count = _count(header, "split.count") or 1
    found = _SPLIT.match(path.name)
    if count <= 1 or found is None:
        return (path,)
    if int(found["number"]) != 1:
        first = path.with_name(f"{found['stem']}-00001-of-{found['count']}.gguf")
        raise HostError(
            Reason.UNSUPPORTED,
            tr(
                "{path} is part {found} of {count} of a model.",
                path=path.name,
                found=int(found["number"]),
                count=count,
            ),
            cause="A model in several files is read from its first one.",
            fix=tr("Choose the first part, {first}.", first=first.name),
            evidence={"path": str(path), "first": str(first)},
        )
    if count > MAX_PARTS or count != int(found["count"]):
        raise _damaged(path, tr("it says that it has {count} parts", count=count))
    parts = tuple(path.with_name(f"{found['stem']}-{n:05d}-of-{count:05d}.gguf") for n in range(1, count + 1))
    missing = [part.name for part in parts[1:] if not part.is_file()]
    if missing:
        raise HostError(
            Reason.MODEL_FILE_MISSING,
            tr(
                "{count} of the {count2} parts of {path} are missing.",
                count=len(missing),
                count2=count,
                path=path.name,
            ),
            cause="The download did not finish, or a part was moved.",
            fix=tr("Fetch {missing} into the same folder.", missing=missing[0]),
            evidence={"path": str(path), "missing": missing[:16]},
        )
    return parts


def _stem(path: Path) -> str:
    found = _SPLIT.match(path.name)
    return found["stem"] if found else path.stem


def _text(header: Header, key: str) -> str | None:
    value = header.values.get(key)
    return value.strip() or None if isinstance(value, str) else None


def _label(header: Header, key: str) -> str | None:
    """A name for people, cut where no name is so long."""
    text = _text(header, key)
    return text if text is None or len(text) <= _LONGEST_LABEL else f"{text[:_LONGEST_LABEL]}…"


def _count(header: Header, key: str) -> int | None:
    """A count that may be given a layer: then the largest, which is what buffers are sized by."""
    value: Value | None = header.values.get(key)
    if isinstance(value, tuple):
        value = max((item for item in value if _is_count(item) and item > 0), default=None)
    return int(value) if _is_count(value) else None


def _fewest(header: Header, key: str) -> int | None:
    """The least of a count that is given a layer; 0 where some layers have none."""
    value: Value | None = header.values.get(key)
    return (
        min((int(item) for item in value if _is_count(item)), default=None)
        if isinstance(value, tuple)
        else None
    )


def _fim_ids(header: Header) -> tuple[int, ...]:
    """The numbers of the tokens for prefix, suffix and middle, after that for the beginning of a text where
    one belongs there; empty unless all three are known."""
    names = (("fim_pre", "prefix"), ("fim_suf", "suffix"), ("fim_mid", "middle"))
    found = [
        next(
            (id_ for one in pair if (id_ := _count(header, f"tokenizer.ggml.{one}_token_id")) is not None),
            None,
        )
        for pair in names
    ]
    ids = tuple(number for number in found if number is not None)
    if len(ids) < len(found):
        return ()
    begins = header.values.get("tokenizer.ggml.add_bos_token")
    # Vocabularies of SentencePiece have one unless they say otherwise.
    begins = _text(header, "tokenizer.ggml.model") == "llama" if begins is None else begins
    begin = _count(header, "tokenizer.ggml.bos_token_id")
    return (begin, *ids) if begins and begin is not None else ids


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 48


def _quantization(header: Header, tensors: tuple[Tensor, ...]) -> str:
    """The file's own label; where it has none, the type that holds most of the bytes."""
    declared = _count(header, "general.file_type")
    if declared is not None and (label := FILE_TYPES.get(declared & ~1024)):
        return label
    weight: dict[int, int] = {}
    for tensor in tensors:
        weight[tensor.type_number] = weight.get(tensor.type_number, 0) + (tensor.size or tensor.elements)
    if not weight:
        return "unknown"
    most = max(weight, key=lambda number: weight[number])
    return TENSOR_TYPES[most][0] if most in TENSOR_TYPES else f"type {most}, unknown to this program"


def _pooling(header: Header, architecture: str) -> str:
    """The way in which the model makes one vector of a text; empty where the file does not say."""
    number = _count(header, f"{architecture}.pooling_type")
    return _POOLING[number] if number is not None and number < len(_POOLING) else ""


def _causal(header: Header, architecture: str) -> bool:
    """Return False where each token sees the later ones too: the model reads a text at once."""
    said = header.values.get(f"{architecture}.attention.causal")
    encoder = any(part in architecture for part in _EMBEDDING_ONLY)
    return said if isinstance(said, bool) else not encoder


def _embeds_only(header: Header, architecture: str) -> bool:
    if any(part in architecture for part in _EMBEDDING_ONLY):
        return True
    pooling = _count(header, f"{architecture}.pooling_type")
    return pooling is not None and pooling > 0


def _damaged(path: Path, detail: str) -> HostError:
    return HostError(
        Reason.MODEL_FILE_DAMAGED,
        tr("{path} is damaged: {detail}.", path=path.name, detail=detail),
        cause="The file was renamed, or it changed after it was written.",
        fix="Fetch the model again.",
        evidence={"path": str(path)},
    )
