"""`/v1/models`: OpenAI's list with the fields that editors look for, each only where it is known."""

from collections.abc import Sequence
from typing import Any

from engine_host.core.did_you_mean import near_names
from engine_host.gateway.directory import LOADED, Target
from engine_host.gateway.error_answers import EndpointError
from engine_host.protocol.errors import Reason

_SAMPLING = (
    "temperature", "top_p", "top_k", "min_p", "max_tokens", "stop", "seed", "frequency_penalty",
    "presence_penalty", "logprobs", "top_logprobs", "response_format", "structured_outputs",
)  # fmt: skip


def model_entry(target: Target) -> dict[str, Any]:
    """One model as OpenAI's object plus vLLM's, llama.cpp's and llama-swap's names for the same facts."""
    meta = {
        "n_ctx": target.context,
        "n_ctx_train": target.context_trained,
        "n_params": target.parameters,
        "size": target.size,
        "architecture": target.architecture,
        "quantization": target.quantization,
        "slots": target.slots,
    }
    return {
        "id": target.name,
        "object": "model",
        "created": int(target.created_at),
        "owned_by": target.owned_by,
        "max_model_len": target.context,
        "context_length": target.context,
        "capabilities": capabilities(target),
        "architecture": {
            "input_modalities": input_modalities(target),
            "output_modalities": output_modalities(target),
        },
        "supported_parameters": supported_parameters(target),
        "status": {"value": target.state},
        **({"stands_for": list(target.route)} if target.route else {}),
        "meta": {name: value for name, value in meta.items() if value is not None},
    }


def capabilities(target: Target) -> list[str]:
    """Name what a model can be asked for here."""
    if target.reranking:
        return ["rerank"]
    if target.embeddings:
        return ["embeddings"]
    if target.tokens_only:
        return ["completion"]
    found = ["completion", "chat"]
    if target.tools:
        found.append("tool_use")
    if target.images:
        found.append("vision")
    if target.fill_in_the_middle:
        found.append("fill_in_the_middle")
    return found


def input_modalities(target: Target) -> list[str]:
    """Name what a request may hold, in OpenRouter's and llama.cpp's words."""
    return ["text", "image"] if target.images else ["text"]


def output_modalities(target: Target) -> list[str]:
    """Name what an answer holds, in OpenRouter's words."""
    if target.reranking:
        return ["rerank"]
    return ["embeddings"] if target.embeddings else ["text"]


def supported_parameters(target: Target) -> list[str]:
    """Name the fields of a request that the model heeds, in OpenRouter's words."""
    if target.embeddings or target.reranking:
        return []
    return [*_SAMPLING, *(("tools", "tool_choice") if target.tools else ())]


def model_list(targets: Sequence[Target]) -> dict[str, Any]:
    """The answer of `GET /v1/models`."""
    return {"object": "list", "data": [model_entry(target) for target in targets]}


def find(targets: Sequence[Target], name: str) -> Target:
    """The engine behind a model id; raises EndpointError 404 with what is most like it and what runs."""
    for target in targets:
        if target.name == name:
            return target
    running = ", ".join(target.name for target in targets if target.state == LOADED) or "none"
    near = near_names(name[:200], [target.name for target in targets])
    meant = f" Did you mean {near[0]}?" if near else ""
    raise EndpointError(
        404,
        "model_not_found",
        f"There is no model {name[:200]!r} here.{meant} Running now: {running}.",
        Reason.NOT_FOUND,
        "model",
    )
