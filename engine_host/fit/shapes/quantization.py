"""Read the bits of each weight and its scales from a config's `quantization_config`.

The forms are those of Transformers and vLLM: fp8, AWQ, GPTQ, AutoRound, bitsandbytes, MXFP4, ModelOpt
(NVFP4, FP8) and compressed-tensors. Embeddings and the output matrix stay as they are unless the config says
otherwise.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason

# Where a checkpoint may keep its decoder; patterns are written against any of these.
_PREFIXES = ("model.", "model.language_model.", "language_model.model.", "language_model.", "")
_IGNORED = ("ignore", "ignored_layers", "modules_to_not_convert", "exclude_modules", "llm_int8_skip_modules")
_HEAD = "lm_head"
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


@dataclass(frozen=True, slots=True)
class _Rule:
    """Weights whose modules match one of `targets` have so many bits; an empty list is every linear layer."""

    bits: float
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Quantization:
    """Bits by module name; `ignored` modules stay as they are."""

    rules: tuple[_Rule, ...]
    ignored: frozenset[str] = frozenset()
    patterns: tuple[str, ...] = ()
    head: bool = False

    def bits(self, module: str) -> float | None:
        """Bits of a weight of a module such as `layers.3.self_attn.q_proj`; None where it is left alone."""
        if module == _HEAD and not self.head:
            return None
        if not self.ignored.isdisjoint(_runs(module)) or any(_matches(one, module) for one in self.patterns):
            return None
        for rule in self.rules:
            if not rule.targets or any(_targeted(one, module) for one in rule.targets):
                return rule.bits
        return None


def read_quantization(config: Mapping[str, Any]) -> Quantization | None:
    """Read the quantisation in a config.json; None where there is none.

    Raises HostError(unsupported) for a method that is not known here: its weights would be counted wrongly.
    """
    inner = config.get("text_config")
    places = [config, inner] if isinstance(inner, Mapping) else [config]
    keys = ("quantization_config", "compression_config")
    found = next(
        (place[key] for place in places for key in keys if isinstance(place.get(key), Mapping)), None
    )
    if found is None:
        return None
    ignored = [str(name) for key in _IGNORED for name in found.get(key) or ()]
    # GPTQ and AutoRound say it of each module, by a pattern.
    ignored += [f"re:{name[2:]}" for name in found.get("dynamic") or () if name.startswith("-:")]
    ignored += [
        name for name, rule in (found.get("extra_config") or {}).items() if (rule.get("bits") or 0) >= 16
    ]
    plain = frozenset(_normal(name) for name in ignored if not _is_pattern(name))
    return Quantization(
        rules=tuple(_rules(found)),
        ignored=plain - {_HEAD},
        patterns=tuple(name for name in ignored if _is_pattern(name)),
        head=bool(found.get(_HEAD)) and _HEAD not in plain,
    )


def _rules(found: Mapping[str, Any]) -> Iterator[_Rule]:
    method = str(found.get("quant_method") or "").lower().replace("_", "-")
    if groups := found.get("config_groups"):
        yield from _compressed(groups.values(), found)
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
        yield _Rule(4 + 8 / 32, ("re:.*experts.*",))
    elif method.startswith("modelopt"):
        bits, scales = _MODELOPT.get(str(found.get("quant_algo") or "").upper(), (0, 0.0))
        if not bits:
            raise _not_known(f"{method} {found.get('quant_algo')}")
        yield _Rule(bits + scales)
    elif method:
        raise _not_known(method)


def _compressed(groups: Iterable[Mapping[str, Any]], found: Mapping[str, Any]) -> Iterator[_Rule]:
    for group in groups:
        weights = group.get("weights")
        if not isinstance(weights, Mapping):
            continue  # It quantises activations or the cache alone.
        bits = float(weights.get("num_bits") or 16)
        form = str(group.get("format") or found.get("format") or "")
        size = weights.get("group_size") or 0
        if weights.get("strategy") == "block":
            bits += _block_scales(weights.get("block_structure"))
        elif size > 0:
            small = weights.get("strategy") == "tensor_group" or "fp4" in form or _is_modelopt(found)
            bits += (8 if small and bits <= 4 else 16) / size
            if weights.get("symmetric") is False:
                bits += float(weights.get("num_bits") or 0) / size
        targets = tuple(str(one) for one in group.get("targets") or ())
        yield _Rule(bits, () if "Linear" in targets else targets)


def _is_modelopt(found: Mapping[str, Any]) -> bool:
    return str(found.get("quant_method")).startswith("modelopt")


def _grouped(found: Mapping[str, Any]) -> float:
    """Bits of a weight; a group has a scale in 16 bits, and a zero point in as many as a weight."""
    bits = float(found.get("bits") or found.get("w_bit") or 4)
    size = int(found.get("group_size") or found.get("q_group_size") or 0)
    return bits + (16 + bits) / size if size > 0 else bits


def _block_scales(block: Any) -> float:
    """Bits a weight of a scale in 32 bits for each block of a matrix."""
    if isinstance(block, Sequence) and len(block) == 2 and all(isinstance(one, int) for one in block):
        return float(32 / (block[0] * block[1]))
    return 0.0


def _is_pattern(name: str) -> bool:
    return name.startswith("re:") or "*" in name


def _normal(name: str) -> str:
    """A module's name without the place of its decoder, which differs from checkpoint to checkpoint."""
    place = name.find("layers.")
    return name[place:] if place > 0 and name[place - 1] == "." and not name.startswith("mtp") else name


def _runs(module: str) -> Iterator[str]:
    """Every run of a name's components: a list may name a layer, a block of it, or the word alone."""
    parts = module.split(".")
    for first in range(len(parts)):
        for last in range(first + 1, len(parts) + 1):
            yield ".".join(parts[first:last])


def _matches(pattern: str, module: str) -> bool:
    names = [prefix + module for prefix in _PREFIXES]
    if pattern.startswith("re:"):
        return any(re.match(pattern[3:], name) for name in names)
    return any(fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}.*") for name in names)


def _targeted(target: str, module: str) -> bool:
    return _matches(target, module) if _is_pattern(target) else _normal(target) in set(_runs(module))


def _not_known(method: str) -> HostError:
    return HostError(
        Reason.UNSUPPORTED,
        f"What this model needs cannot be computed: weights quantised by {method} are not known here.",
        cause="A figure that is not known is not guessed.",
        fix="Say how many bits a weight has: --bits.",
        evidence={"key": "quantization_config", "method": method},
    )
