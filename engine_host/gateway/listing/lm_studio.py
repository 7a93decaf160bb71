"""`/api/v0/models` and `/api/v1/models` of LM Studio, which tell Cline, Zed and others the context length.

Source: lmstudio.ai/docs/developer/rest. Zed reads `type`, `state` and `compatibility_type` as fixed words.
"""

from collections.abc import Sequence
from typing import Any

from engine_host.gateway.directory import LOADED, Target

_MILLION, _BILLION = 10**6, 10**9


def model_list(targets: Sequence[Target]) -> dict[str, Any]:
    """Return the answer of `/api/v0/models`."""
    return {"object": "list", "data": [model_entry(target) for target in targets]}


def model_entry(target: Target) -> dict[str, Any]:
    """Return one model in the form of version 0."""
    entry: dict[str, Any] = {
        "id": target.name,
        "object": "model",
        "type": _kind(target),
        "publisher": "local",
        "arch": target.architecture or "unknown",
        "compatibility_type": "gguf" if target.native_infill else "safetensors",
        "quantization": target.quantization or "unknown",
        "state": "loaded" if target.state == LOADED else "not-loaded",
        "max_context_length": target.context_trained or target.context,
    }
    if target.state == LOADED:
        entry["loaded_context_length"] = target.context
    words = [*(["tool_use"] if target.tools else []), *(["vision"] if target.images else [])]
    return {**entry, "capabilities": words}


def model_list_v1(targets: Sequence[Target]) -> dict[str, Any]:
    """Return the answer of `/api/v1/models`."""
    return {"models": [_entry_v1(target) for target in targets]}


def _entry_v1(target: Target) -> dict[str, Any]:
    return {
        "type": "embedding" if target.embeddings else "llm",
        "publisher": "local",
        "key": target.name,
        "display_name": target.name,
        "architecture": target.architecture,
        "quantization": {"name": target.quantization, "bits_per_weight": None},
        "size_bytes": target.size,
        "params_string": parameters(target.parameters),
        "loaded_instances": [
            {
                "id": target.name,
                "config": {"context_length": target.context, "parallel": target.slots},
            }
        ]
        if target.state == LOADED
        else [],
        "max_context_length": target.context_trained or target.context,
        "format": "gguf" if target.native_infill else "safetensors",
        "capabilities": {"vision": bool(target.images), "trained_for_tool_use": bool(target.tools)},
        "description": None,
    }


def parameters(count: int | None) -> str | None:
    """Return a number of parameters as people name it, such as 7.6B; None where it is not known."""
    if count is None:
        return None
    if count >= _BILLION:
        return f"{count / _BILLION:.1f}B"
    return f"{count / _MILLION:.1f}M" if count >= _MILLION else str(count)


def _kind(target: Target) -> str:
    if target.embeddings:
        return "embeddings"
    return "vlm" if target.images else "llm"
