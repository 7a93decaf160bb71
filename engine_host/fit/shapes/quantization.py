"""Read the bits of each weight and its scales from a config's `quantization_config`.

The forms are those of Transformers and vLLM: fp8, AWQ, GPTQ, AutoRound, bitsandbytes, MXFP4, ModelOpt
(NVFP4, FP8) and compressed-tensors. Embeddings and the output matrix stay as they are unless the config says
otherwise.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine_host.core.errors import HostError
from engine_host.fit.shapes.module_names import ModuleNames
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr

_IGNORED = ("ignore", "ignored_layers", "modules_to_not_convert", "exclude_modules", "llm_int8_skip_modules")
_HEAD = "lm_head"
_MOST_GROUPS = 64
_WIDEST = 64
_LARGEST_GROUP = 1 << 31
# ModelOpt's names: bits of a weight, and bits of a scale over how many weights.
_MODELOPT = {
    "FP8": (8, 0.0),
    "FP8_PB_WO": (8, 32 / 128**2),
    "NVFP4": (4, 8 / 16),
    "MXFP4": (4, 8 / 32),
    "MXFP8": (8, 8 / 32),
    "W4A16_AWQ": (4, 16 / 128),
    "W4A8_AWQ": (4, 16 / 128),
}
_NO_NAMES = ModuleNames(())


@dataclass(frozen=True, slots=True)
class _Rule:
    """Weights whose modules are among the targets have so many bits; an empty list is every linear layer."""

    bits: float
    targets: ModuleNames = _NO_NAMES


@dataclass(frozen=True, slots=True)
class Quantization:
    """Bits by module name; `ignored` modules stay as they are."""

    rules: tuple[_Rule, ...]
    ignored: ModuleNames = _NO_NAMES
    head: bool = False

    def bits(self, module: str) -> float | None:
        """Bits of a weight of a module such as `layers.3.self_attn.q_proj`; None where it is left alone."""
        if module == _HEAD and not self.head:
            return None
        if module in self.ignored:
            return None
        for rule in self.rules:
            if not rule.targets or module in rule.targets:
                return rule.bits
        return None


def read_quantization(config: Mapping[str, Any]) -> Quantization | None:
    """Read the quantisation in a config.json; None where there is none.

    Raises HostError(unsupported) for a method that is not known here, or a form that cannot be read: its
    weights would be counted wrongly.
    """
    inner = config.get("text_config")
    places = [config, inner] if isinstance(inner, Mapping) else [config]
    keys = ("quantization_config", "compression_config")
    found = next(
        (place[key] for place in places for key in keys if isinstance(place.get(key), Mapping)), None
    )
    if found is None:
        return None
    try:
        return _read(found)
    except ValueError as error:
        raise HostError(
            Reason.UNSUPPORTED,
            tr("What this model needs cannot be computed: in its quantization_config {error}.", error=error),
            cause="A figure that is not known is not guessed.",
            fix="Say how many bits a weight has: --bits.",
            evidence={"key": "quantization_config"},
        ) from error


def _read(found: Mapping[str, Any]) -> Quantization:
    """The same of the table itself. Raises ValueError, HostError(unsupported)."""
    ignored = [name for key in _IGNORED for name in _words(found, key)]
    # GPTQ and AutoRound say it of each module, by a pattern.
    ignored += [f"re:{name[2:]}" for name in _table(found, "dynamic") if name.startswith("-:")]
    extra = _table(found, "extra_config")
    ignored += [name for name in extra if _number(_table(extra, name), "bits", 0, _WIDEST) >= 16]
    head = _HEAD in ignored
    return Quantization(
        rules=tuple(_rules(found)),
        ignored=ModuleNames(name for name in ignored if name != _HEAD),
        head=bool(found.get(_HEAD)) and not head,
    )


def _rules(found: Mapping[str, Any]) -> Iterator[_Rule]:
    method = _word(found, "quant_method").lower().replace("_", "-")
    if groups := _table(found, "config_groups"):
        if len(groups) > _MOST_GROUPS:
            raise ValueError(f"there are {len(groups)} groups")
        for name in groups:
            yield from _compressed(_table(groups, name), found)
    elif method in {"fp8", "fbgemm-fp8"}:
        yield _Rule(8 + _block_scales(found.get("weight_block_size")))
    elif method in {"awq", "gptq", "gptq-marlin", "awq-marlin", "auto-round", "intel/auto-round"}:
        yield _Rule(_grouped(found))
    elif method == "bitsandbytes":
        # A scale in 32 bits for 64 weights; quantised again it takes 8 bits.
        scale = (8 if found.get("bnb_4bit_use_double_quant") else 32) / 64
        yield _Rule(4 + scale if found.get("load_in_4bit") else 8)
    elif method == "mxfp4":
        # vLLM and Transformers know this form of a mixture's experts alone.
        yield _Rule(4 + 8 / 32, ModuleNames(("re:.*experts.*",)))
    elif method.startswith("modelopt"):
        algorithm = _word(found, "quant_algo")
        bits, scales = _MODELOPT.get(algorithm.upper(), (0, 0.0))
        if not bits:
            raise _not_known(f"{method} {algorithm}")
        yield _Rule(bits + scales)
    elif method:
        raise _not_known(method)


def _compressed(group: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[_Rule]:
    weights = group.get("weights")
    if not isinstance(weights, Mapping):
        return  # It quantises activations or the cache alone.
    written = bits = _number(weights, "num_bits", 16, _WIDEST) or 16
    form = _word(group, "format") or _word(found, "format")
    size = _number(weights, "group_size", 0, _LARGEST_GROUP)
    if weights.get("strategy") == "block":
        bits += _block_scales(weights.get("block_structure"))
    elif size >= 1:
        small = weights.get("strategy") == "tensor_group" or "fp4" in form or _is_modelopt(found)
        bits += (8 if small and bits <= 4 else 16) / size
        if weights.get("symmetric") is False:
            bits += written / size
    targets = _words(group, "targets")
    yield _Rule(bits, _NO_NAMES if "Linear" in targets else ModuleNames(targets))


def _is_modelopt(found: Mapping[str, Any]) -> bool:
    return _word(found, "quant_method").startswith("modelopt")


def _grouped(found: Mapping[str, Any]) -> float:
    """Bits of a weight; a group has a scale in 16 bits, and a zero point in as many as a weight."""
    bits = _number(found, "bits", 0, _WIDEST) or _number(found, "w_bit", 0, _WIDEST) or 4
    size = _number(found, "group_size", 0, _LARGEST_GROUP)
    size = size or _number(found, "q_group_size", 0, _LARGEST_GROUP)
    return bits + (16 + bits) / size if size >= 1 else bits


def _block_scales(block: Any) -> float:
    """Bits a weight of a scale in 32 bits for each block of a matrix."""
    if isinstance(block, list) and len(block) == 2 and all(type(one) is int and one > 0 for one in block):
        return float(32 / min(block[0] * block[1], _LARGEST_GROUP))
    return 0.0


def _words(found: Mapping[str, Any], key: str) -> list[str]:
    """A list of names; empty where there is none. Raises ValueError."""
    value = found.get(key) or []
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError(f"{key} is no list of names")
    return value


def _table(found: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A table; empty where there is none. Raises ValueError."""
    value = found.get(key) or {}
    if not isinstance(value, Mapping):
        raise ValueError(f"{key[:80]} is no table")
    return value


def _word(found: Mapping[str, Any], key: str) -> str:
    value = found.get(key)
    return value[:80] if isinstance(value, str) else ""


def _number(found: Mapping[str, Any], key: str, usual: float, most: float) -> float:
    """A number up to `most`; some write -1 for none, which is 0, and some write text. Raises ValueError."""
    value = found.get(key)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 12:
        value = int(value)
    if value is None:
        return usual
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1 <= value <= most:
        raise ValueError(f"{key} cannot be what it is")
    return max(float(value), 0.0)


def _not_known(method: str) -> HostError:
    return HostError(
        Reason.UNSUPPORTED,
        tr(
            "What this model needs cannot be computed: weights quantised by {method} are not known here.",
            method=method,
        ),
        cause="A figure that is not known is not guessed.",
        fix="Say how many bits a weight has: --bits.",
        evidence={"key": "quantization_config", "method": method},
    )
