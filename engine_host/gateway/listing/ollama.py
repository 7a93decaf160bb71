"""`/api/tags`, `/api/ps`, `/api/show` and `/api/version` of Ollama, read-only.

Source: docs/api.md of Ollama.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

from engine_host.gateway.directory import Target
from engine_host.gateway.listing.anthropic import timestamp
from engine_host.gateway.listing.lm_studio import parameters
from engine_host.gateway.openai.listing import find

VERSION = "0.12.6"
"""The version of Ollama whose API is spoken here; VS Code asks for 0.6.4 at least."""
_LATEST = ":latest"
_NEVER = "9999-12-31T23:59:59Z"


def version() -> dict[str, Any]:
    """Return the answer of `/api/version`."""
    return {"version": VERSION}


def tags(targets: Sequence[Target]) -> dict[str, Any]:
    """Return the answer of `/api/tags`: what can be asked."""
    return {"models": [_entry(target) for target in targets]}


def running(targets: Sequence[Target]) -> dict[str, Any]:
    """Return the answer of `/api/ps`: the same, with what each was loaded with, and when it is stopped."""
    return {
        "models": [
            {**_entry(target), "expires_at": _expiry(target), "context_length": target.context}
            for target in targets
        ]
    }


def _expiry(target: Target) -> str:
    return _NEVER if target.expires_at is None else timestamp(target.expires_at)


def show(target: Target) -> dict[str, Any]:
    """Return the answer of `/api/show`: facts alone, no path, no template and no licence text."""
    architecture = target.architecture or "unknown"
    info: dict[str, Any] = {
        "general.architecture": architecture,
        "general.parameter_count": target.parameters,
        # Clients read the length of the context from the model's facts, and mean what they may send.
        f"{architecture}.context_length": target.context,
    }
    return {
        "license": "",
        "modelfile": "",
        "parameters": f"num_ctx {target.context}",
        "template": "",
        "details": _details(target),
        "model_info": {name: value for name, value in info.items() if value is not None},
        "capabilities": _capabilities(target),
        "modified_at": timestamp(target.created_at),
    }


def named(targets: Sequence[Target], name: str) -> Target:
    """Return the model that a client of Ollama means, which may add a tag; raises EndpointError(404)."""
    if any(target.name == name for target in targets):
        return find(targets, name)
    return find(targets, name.removesuffix(_LATEST))


def _entry(target: Target) -> dict[str, Any]:
    return {
        "name": target.name,
        "model": target.name,
        "modified_at": timestamp(target.created_at),
        "size": target.size or 0,
        # Of Ollama's manifest, which there is none of: what tells two models apart for a client.
        "digest": hashlib.sha256(f"{target.engine}\n{target.name}".encode()).hexdigest(),
        "details": _details(target),
    }


def _details(target: Target) -> dict[str, Any]:
    family = target.architecture or "unknown"
    return {
        "parent_model": "",
        "format": "gguf" if target.native_infill else "safetensors",
        "family": family,
        "families": [family],
        "parameter_size": parameters(target.parameters) or "",
        "quantization_level": target.quantization or "",
    }


def _capabilities(target: Target) -> list[str]:
    if target.reranking:
        return []
    if target.embeddings:
        return ["embedding"]
    found = ["completion"]
    found += ["tools"] if target.tools else []
    found += ["insert"] if target.fill_in_the_middle else []
    return found + (["vision"] if target.images else [])
