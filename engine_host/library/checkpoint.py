"""Read a checkpoint in Hugging Face's layout: a folder of config.json, safetensors files and a tokenizer.

A folder with a config.json and no weights is a *shape*: an engine gives it random weights, and its speed and
its memory can be measured without a download.
"""

import errno
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine_host.core.errors import HostError
from engine_host.core.outside import files, json_text
from engine_host.library.fim import FimTokens, fim_tokens
from engine_host.library.safetensors_format import Shard, read_shard
from engine_host.library.unreadable import no_model, unreadable
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import ntr, tr

CONFIG = "config.json"
INDEX = "model.safetensors.index.json"
# Bytes and values that a file may have. A config may name every module that is not quantised, an index names
# every tensor.
_LIMITS = {CONFIG: (8 << 20, 250_000), INDEX: (64 << 20, 1_000_000)}
_OTHER_LIMITS = (16 << 20, 500_000)
MAX_SHARDS = 2_000
MAX_TENSORS = 1_000_000
# The deepest models of 2026 have 315.
MAX_LAYERS = 1_000
_LONGEST_NAME = 255
_LONGEST_LABEL = 200
_LONGEST_TEMPLATE = 1 << 20
_PART = re.compile(r"^(?P<stem>.+)-\d{5}-of-(?P<count>\d{5})\.safetensors$")
# Weights beside the model's own: consolidated copies of the same, adapters, optimizer states.
_NOT_WEIGHTS = re.compile(r"^(consolidated|adapter_|optimizer|training_)", re.IGNORECASE)
_PICKLED = re.compile(r"^(pytorch_model|model|consolidated).*\.(bin|pt|pth)$")
_TOKENIZERS = (
    "tokenizer.json",
    "tokenizer.model",
    "vocab.json",
    "tekken.json",
    "tiktoken.model",
    "spiece.model",
)
_EMBEDDING_ONLY = re.compile(r"^(Bert|Roberta|XLMRoberta|NomicBert|ModernBert|Gte|Xlm)\w*(Model|MaskedLM)$")
_CARD_BYTES = 64 << 10
# Packed formats keep several weights in one element.
_PACKED = re.compile(r"(qweight|weight_packed)$")
# What a quantised checkpoint keeps beside its weights.
_NO_PARAMETER = re.compile(r"(scales?|scale_inv|zeros|zero_point|g_idx|weight_shape|weight_scale_2|qzeros)$")
_BITS = {"I64": 64, "U64": 64, "I32": 32, "U32": 32, "I16": 16, "U16": 16, "I8": 8, "U8": 8}


@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """A checkpoint as its files describe it; sizes in bytes, context in tokens, None where it is silent.

    `parts` are the files that make the model what it is; `shape` says that it has no weights.
    """

    path: Path
    parts: tuple[Path, ...]
    architectures: tuple[str, ...]
    model_type: str
    quantization: str
    size: int
    shape: bool
    parameters: int | None = None
    dtype: str | None = None
    context: int | None = None
    layers: int | None = None
    embedding_length: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    layer_types: tuple[str, ...] = ()
    sliding_window: int | None = None
    mtp_layers: int = 0
    experts: int | None = None
    feed_forward: int | None = None
    expert_feed_forward: int | None = None
    rope_scaled: bool = False
    vocabulary: int | None = None
    tokenizer: bool = False
    chat_template: str = ""
    fim_tokens: FimTokens | None = None
    embedding_only: bool = False
    images: bool = False
    audio: bool = False
    licence: str | None = None

    @property
    def architecture(self) -> str:
        """The class that runs it, as config.json names it."""
        return self.architectures[0] if self.architectures else self.model_type

    @property
    def format(self) -> str:
        """The name of its format in the list of models."""
        return "shape" if self.shape else "safetensors"

    @property
    def fim(self) -> bool:
        """True if its tokenizer has the tokens for filling in the middle."""
        return self.fim_tokens is not None

    @property
    def hybrid(self) -> bool:
        """True if some of its layers keep a state of fixed size instead of a KV cache."""
        return any("attention" not in kind or kind.startswith("linear") for kind in self.layer_types)

    @property
    def attention_layers(self) -> int | None:
        """The number of layers that keep a KV cache; None if not known."""
        if not self.layer_types:
            return self.layers
        return sum("attention" in kind and not kind.startswith("linear") for kind in self.layer_types)


def is_checkpoint(folder: Path, names: frozenset[str]) -> bool:
    """Return True if a folder with these files is a checkpoint; many other things have a config.json."""
    if CONFIG not in names:
        return False
    if (
        any(name.endswith(".safetensors") and not _NOT_WEIGHTS.match(name) for name in names)
        or INDEX in names
    ):
        return True
    # A config beside a GGUF belongs to that.
    if any(name.lower().endswith(".gguf") for name in names):
        return False
    try:
        config = read_json(folder / CONFIG)
    except HostError:
        return False
    return isinstance(config.get("model_type"), str) and bool(config.get("architectures"))


def read_checkpoint(folder: Path) -> CheckpointInfo:
    """Reads what the model in a folder is, without loading it: config.json and the safetensors headers.

    Raises HostError: `model_file_missing` names what is not there, `model_file_damaged` what is broken,
    `unsupported` is for pickled weights.
    """
    names = frozenset(_names(folder))
    if CONFIG not in names and not any(name.endswith(".safetensors") for name in names):
        _refuse_unfinished(folder)
        raise no_model(folder, CONFIG)
    config = read_json(folder / CONFIG)
    # Models that also see have the language model's own settings one level down.
    inner = config.get("text_config")
    text: Mapping[str, Any] = {**config, **inner} if isinstance(inner, dict) else config
    shards = _shards(folder, names)
    if not shards and (pickled := sorted(name for name in names if _PICKLED.match(name))):
        raise HostError(
            Reason.UNSUPPORTED,
            tr("{folder} holds its weights as {pickled}.", folder=folder.name, pickled=pickled[0]),
            cause="Such a file is a program that runs when it is read.",
            fix="Fetch the model as safetensors.",
            evidence={"path": str(folder), "files": pickled[:16]},
        )
    if not shards:
        _refuse_unfinished(folder)
    heads, width = _count(text, "num_attention_heads"), _count(text, "hidden_size")
    head_dim = _count(text, "head_dim")
    if head_dim is None and heads and width:
        head_dim = width // heads
    layers = _count(text, "num_hidden_layers")
    tokenizer_config = _optional_json(folder / "tokenizer_config.json")
    dtype = _text(text, "dtype") or _text(text, "torch_dtype")
    architectures = config.get("architectures")
    return CheckpointInfo(
        path=folder,
        parts=(folder / CONFIG, *(shard.path for shard in shards)),
        architectures=_names_in(architectures),
        model_type=_text(config, "model_type") or "unknown",
        quantization=_quantization(config, text, dtype, shards),
        size=sum(shard.size for shard in shards),
        shape=not shards,
        parameters=_parameters(folder, config, shards),
        dtype=dtype,
        context=_count(text, "max_position_embeddings")
        or _count(text, "max_sequence_length")
        or _count(text, "n_positions"),
        layers=layers,
        embedding_length=width,
        heads=heads,
        kv_heads=_count(text, "num_key_value_heads") or heads,
        head_dim=head_dim,
        layer_types=_layer_types(text, layers),
        sliding_window=_count(text, "sliding_window") if text.get("use_sliding_window", True) else None,
        mtp_layers=_mtp_layers(text, shards),
        experts=_count(text, "num_experts")
        or _count(text, "n_routed_experts")
        or _count(text, "num_local_experts"),
        feed_forward=_count(text, "intermediate_size"),
        expert_feed_forward=_count(text, "moe_intermediate_size"),
        rope_scaled=_rope_scaled(text),
        vocabulary=_count(text, "vocab_size"),
        tokenizer=any(name in names for name in _TOKENIZERS),
        chat_template=_chat_template(folder, tokenizer_config),
        fim_tokens=fim_tokens(folder / "tokenizer.json"),
        embedding_only=_embeds_only(names, architectures),
        images=_has_part(config, "vision_config"),
        audio=_has_part(config, "audio_config"),
        licence=_licence(folder / "README.md"),
    )


def files_fingerprint(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Changes when a file of the checkpoint does: name, bytes and time of change of each. Raises OSError."""
    marks = []
    for name in sorted(_names(folder)):
        state = (folder / name).stat()
        marks.append((name, state.st_size, state.st_mtime_ns))
    return tuple(marks)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object of a model. Raises HostError(model_file_missing), HostError(model_file_damaged)."""
    largest, most = _LIMITS.get(path.name, _OTHER_LIMITS)
    try:
        value = json_text.parse(files.read(path, largest), most, finite=False)
    except FileNotFoundError as error:
        raise HostError(
            Reason.MODEL_FILE_MISSING,
            tr("There is no {path} in {parent}.", path=path.name, parent=path.parent),
            cause="The folder is no model, or the download did not finish.",
            fix="Choose the folder that holds config.json and the safetensors files.",
            evidence={"path": str(path)},
        ) from error
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise _damaged(path, tr("it is larger than any such file")) from error
        raise unreadable(path, error) from error
    except ValueError as error:
        raise _damaged(path, tr("it is not JSON: {error}", error=error)) from error
    if not isinstance(value, dict):
        raise _damaged(path, tr("it holds no JSON object"))
    return value


def _names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as listing:
            return [entry.name for entry in listing if entry.is_file()]
    except OSError as error:
        raise unreadable(folder, error) from error


def _shards(folder: Path, names: frozenset[str]) -> tuple[Shard, ...]:
    """The files with weights. Raises HostError that names those which the index or the numbers promise."""
    present = sorted(n for n in names if n.endswith(".safetensors") and not _NOT_WEIGHTS.match(n))
    if INDEX in names:
        where = read_json(folder / INDEX).get("weight_map")
        if not isinstance(where, dict) or not where:
            raise _damaged(folder / INDEX, tr("it does not say which file holds which weight"))
        if not all(isinstance(name, str) for name in where.values()):
            raise _damaged(folder / INDEX, tr("it does not say which file holds which weight"))
        expected = sorted(set(where.values()))
        if len(expected) > MAX_SHARDS or not all(map(_is_file_name, expected)):
            raise _damaged(folder / INDEX, tr("it names files that cannot be the model's"))
    else:
        expected = present
        if found := next((found for name in present if (found := _PART.match(name))), None):
            count = int(found["count"])
            if not 0 < count <= MAX_SHARDS:
                raise _damaged(
                    folder / present[0], tr("its name says that there are {count} parts", count=count)
                )
            expected = [f"{found['stem']}-{n:05d}-of-{count:05d}.safetensors" for n in range(1, count + 1)]
    missing = [name for name in expected if name not in names]
    if missing:
        raise HostError(
            Reason.MODEL_FILE_MISSING,
            ntr(
                "Of the {of} weight files of {folder} {n} is missing: {first}.",
                "Of the {of} weight files of {folder} {n} are missing: {first} and others.",
                len(missing),
                of=len(expected),
                folder=folder.name,
                first=missing[0],
            ),
            cause="The download did not finish, or a file was moved.",
            fix=tr("Fetch {missing} into the same folder.", missing=missing[0]),
            evidence={"path": str(folder), "missing": missing[:16]},
        )
    shards: list[Shard] = []
    tensors = 0
    for name in expected:
        shards.append(read_shard(folder / name))
        tensors += len(shards[-1].tensors)
        if tensors > MAX_TENSORS:
            raise _damaged(folder / name, tr("the model has more tensors than any other"))
    return tuple(shards)


def _is_file_name(name: str) -> bool:
    return 0 < len(name) <= _LONGEST_NAME and name == Path(name).name and name != ".." and "\0" not in name


def _refuse_unfinished(folder: Path) -> None:
    """Raise HostError(model_file_missing) for a download that has not come to the weights yet."""
    blobs = folder.parent.parent / "blobs"
    if folder.parent.name == "snapshots" and any(blobs.glob("*.incomplete")):
        raise HostError(
            Reason.MODEL_FILE_MISSING,
            tr(
                "The weights of {parent} are not there yet.",
                parent=folder.parent.parent.name.removeprefix("models--"),
            ),
            cause="Their download did not finish.",
            fix="Fetch the model again with the program that began it.",
            evidence={"path": str(folder)},
        )


def _parameters(folder: Path, config: Mapping[str, Any], shards: tuple[Shard, ...]) -> int | None:
    """Return the number of weights; an element of a packed format holds several."""
    if not shards:
        return None
    metadata = _optional_json(folder / INDEX).get("metadata")
    total_parameters = _count(metadata, "total_parameters") if isinstance(metadata, dict) else None
    if total_parameters:
        return total_parameters
    method = config.get("quantization_config")
    bits = _bits(method) if isinstance(method, dict) else None
    total = 0
    for shard in shards:
        for tensor in shard.tensors:
            if _NO_PARAMETER.search(tensor.name):
                continue
            packed = _PACKED.search(tensor.name) and bits and tensor.dtype in _BITS
            total += tensor.elements * (_BITS[tensor.dtype] // bits if packed and bits else 1)
    return total


def _bits(method: Mapping[str, Any]) -> int | None:
    """Bits of a quantised weight: at the top of the table, or in the first of its groups."""
    for name in ("bits", "w_bit", "weight_bits"):
        if found := _count(method, name):
            return found
    groups = method.get("config_groups")
    first = next(iter(groups.values()), None) if isinstance(groups, dict) else None
    weights = first.get("weights") if isinstance(first, dict) else None
    return _count(weights, "num_bits") if isinstance(weights, dict) else None


def _quantization(
    config: Mapping[str, Any], text: Mapping[str, Any], dtype: str | None, shards: tuple[Shard, ...]
) -> str:
    """A label: the quantisation's method and bits, else the type of the weights."""
    method = config.get("quantization_config") or text.get("quantization_config")
    if isinstance(method, dict):
        name = _text(method, "quant_method") or _text(method, "quant_algo") or "quantised"
        form = _text(method, "quant_algo") or _text(method, "format") or _text(method, "fmt")
        bits = _bits(method)
        return " ".join([name, *([f"{bits}-bit"] if bits else [form] if form and form != name else [])])
    weight: dict[str, int] = {}
    for shard in shards:
        for tensor in shard.tensors:
            weight[tensor.dtype] = weight.get(tensor.dtype, 0) + tensor.elements
    if weight:
        return max(weight, key=lambda kind: weight[kind])
    short = {"bfloat16": "BF16", "float16": "F16", "float32": "F32"}
    return short.get(dtype or "", dtype or "unknown")


def _mtp_layers(text: Mapping[str, Any], shards: tuple[Shard, ...]) -> int:
    """The layers that draft; none where the weights of a checkpoint were stripped of them."""
    layers = 0
    for name in ("mtp_num_hidden_layers", "num_nextn_predict_layers", "num_mtp_layers", "mtp_num_layers"):
        layers = layers or _count(text, name) or 0
    if not shards or not layers:
        return layers
    depth = _count(text, "num_hidden_layers") or 0
    # DeepSeek's form numbers them after the last layer of the model itself.
    after_last = f".layers.{depth}."
    names = (tensor.name for shard in shards for tensor in shard.tensors)
    return layers if any("mtp" in name or "nextn" in name or after_last in name for name in names) else 0


def _layer_types(text: Mapping[str, Any], layers: int | None) -> tuple[str, ...]:
    for name in ("layer_types", "layers_block_type"):
        kinds = text.get(name)
        if isinstance(kinds, list):
            return tuple(kind for kind in kinds[:MAX_LAYERS] if isinstance(kind, str))
    interval = _count(text, "full_attention_interval")
    if interval and layers and layers <= MAX_LAYERS:
        return tuple(
            "full_attention" if n % interval == 0 else "linear_attention" for n in range(1, layers + 1)
        )
    return ()


def _rope_scaled(text: Mapping[str, Any]) -> bool:
    """Return True if RoPE scaling extends the context beyond `max_position_embeddings`."""
    for name in ("rope_scaling", "rope_parameters"):
        rope = text.get(name)
        if isinstance(rope, dict) and (rope.get("rope_type") or rope.get("type") or "default") != "default":
            return True
    return False


def _chat_template(folder: Path, tokenizer_config: Mapping[str, Any]) -> str:
    """The template's text; "" where there is none."""
    try:
        return files.read_text(folder / "chat_template.jinja", _LONGEST_TEMPLATE)
    except (OSError, UnicodeDecodeError):
        pass
    written = tokenizer_config.get("chat_template")
    if isinstance(written, list):  # Several, each with a name.
        named = [entry for entry in written if isinstance(entry, dict)]
        for name in ("tool_use", "default"):
            if found := next((one.get("template") for one in named if one.get("name") == name), None):
                return _template(found)
        return ""
    if written is not None:
        return _template(written)
    return _template(_optional_json(folder / "chat_template.json").get("chat_template"))


def _template(written: object) -> str:
    return written if isinstance(written, str) and len(written) <= _LONGEST_TEMPLATE else ""


def _embeds_only(names: frozenset[str], architectures: object) -> bool:
    # sentence-transformers writes modules.json: the pooling belongs to the model.
    if "modules.json" in names:
        return True
    return isinstance(architectures, list) and any(_EMBEDDING_ONLY.match(str(one)) for one in architectures)


def _licence(card: Path) -> str | None:
    """`license:` of the card's front matter, where it is one plain word."""
    try:
        with files.open_regular(card) as file:
            start = file.read(_CARD_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    if not start.startswith("---"):
        return None
    front = start[3:].partition("\n---")[0]
    found = re.search(r"^license:\s*['\"]?([A-Za-z0-9.+-]+)['\"]?\s*$", front, re.MULTILINE)
    return found[1] if found else None


def _optional_json(path: Path) -> dict[str, Any]:
    """A JSON object that a model can do without; a broken one is the engine's to complain of."""
    try:
        return read_json(path)
    except HostError:
        return {}


def _text(values: Mapping[str, Any], key: str) -> str | None:
    value = values.get(key)
    return value.strip()[:_LONGEST_LABEL] or None if isinstance(value, str) else None


def _has_part(config: Mapping[str, Any], name: str) -> bool:
    """Return True if a model has a part for what is no text; some that also speak have it one level down."""
    inner = (value for value in config.values() if isinstance(value, dict))
    return any(isinstance(level.get(name), dict) for level in (config, *inner))


def _names_in(values: object) -> tuple[str, ...]:
    """The words of a list, cut where no name is so long."""
    listed = values[:16] if isinstance(values, list) else []
    return tuple(word[:_LONGEST_LABEL] for word in listed if isinstance(word, str) and word)


def _count(values: Mapping[str, Any], key: str) -> int | None:
    value = values.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 1 << 48:
        return None
    return value


def _damaged(path: Path, detail: str) -> HostError:
    return HostError(
        Reason.MODEL_FILE_DAMAGED,
        tr("{path} in {parent} is damaged: {detail}.", path=path.name, parent=path.parent, detail=detail),
        cause="The download did not finish, or the file changed after it was written.",
        fix="Fetch the file again.",
        evidence={"path": str(path)},
    )
