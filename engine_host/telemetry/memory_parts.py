"""The parts of an engine's memory on one device, as the engine itself printed them."""

import re
from collections.abc import Mapping, Sequence

from engine_host.protocol.telemetry import MemoryPart

_OF_A_GPU = re.compile(r"(?:draft )?(?:CUDA|Vulkan|ROCm)(\d{1,3}) (.+)")
_NAMES = {
    "model": "weights",
    "KV": "KV cache",
    "CUDA graphs": "CUDA graphs",
    "recurrent state": "states",
    "compute": "compute",
    "output": "output",
    "draft head": "draft head",
}
_VLLM_PARTS = ("model", "KV", "CUDA graphs")
_SAID = "the engine's log"
_OF_FILES = "the size of its checkpoint, by the engine's log"
REST = "everything else"


def vllm_parts(buffers: Mapping[str, int], held: int | None) -> tuple[MemoryPart, ...]:
    """Return the parts of a vLLM engine on each of its GPUs; it prints them for one of them."""
    named = [*_VLLM_PARTS, *(["draft head"] if "draft head" in buffers else [])]
    parts = [MemoryPart(name=_NAMES[key], memory=buffers.get(key), source=_SAID) for key in named]
    return _with_rest(parts, held)


def vllm_parts_in_ram(buffers: Mapping[str, int], held: int | None) -> tuple[MemoryPart, ...]:
    """Return the parts of a vLLM engine that runs on the CPU; nothing of one whose parts are on GPUs."""
    if "checkpoint" not in buffers:
        return ()
    parts = (
        MemoryPart(name="weights", memory=buffers["checkpoint"], source=_OF_FILES),
        MemoryPart(name="KV cache", memory=buffers.get("KV"), source=_SAID),
    )
    return _with_rest(parts, held)


def llamacpp_parts(buffers: Mapping[str, int], gpu: int | None, held: int | None) -> tuple[MemoryPart, ...]:
    """Return the parts of a llama.cpp engine on its GPU of this place, or with None in RAM."""
    sums: dict[str, int] = {}
    for key, size in buffers.items():
        found = _OF_A_GPU.fullmatch(key)
        if (None if found is None else int(found[1])) != gpu:
            continue
        kind = next((name for ending, name in _NAMES.items() if key.endswith(f" {ending}")), None)
        if kind is not None:
            sums[kind] = sums.get(kind, 0) + size
    parts = [MemoryPart(name=name, memory=size, source=_SAID) for name, size in sums.items() if size]
    for name in ("KV cache", "weights"):
        # Where it told of neither, both are somewhere in the rest.
        if name not in sums and not buffers:
            parts.insert(0, MemoryPart(name=name, memory=None, source=_SAID))
    return _with_rest(parts, held)


def _with_rest(parts: Sequence[MemoryPart], held: int | None) -> tuple[MemoryPart, ...]:
    """Add what the process holds beyond its known parts; not measured where that is not to be told."""
    known = sum(part.memory or 0 for part in parts)
    missing = [part.name for part in parts if part.memory is None]
    # Weights that are mapped from a file need not be in memory as a whole.
    rest = held - known if held is not None and held >= known else None
    source = f"what is left, {' and '.join(missing)} with it" if missing else "what is left"
    return (*parts, MemoryPart(name=REST, memory=rest, source=source))
