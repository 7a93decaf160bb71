"""`/v1/models?client_version=`: the list that Codex asks for, in its own form.

Source: `ModelsResponse` and `ModelInfo` in codex-rs/protocol/src/openai_models.rs. Codex refuses the whole
list for one field that is missing, so every field is written.
"""

from collections.abc import Sequence
from typing import Any

from engine_host.gateway.directory import Target
from engine_host.gateway.openai.listing import input_modalities

_OUTPUT_OF_TOOLS = 10_000
"""Tokens of one tool's output that Codex keeps; its own list has the same."""
_SHARE_OF_CONTEXT = 4


def model_list(targets: Sequence[Target]) -> dict[str, Any]:
    """Return the models that can hold a conversation, the first started first."""
    spoken = [
        target for target in targets if not (target.embeddings or target.reranking or target.tokens_only)
    ]
    return {"models": [_entry(target, place) for place, target in enumerate(spoken)]}


def described(target: Target) -> str:
    """Say in a line where answers come from."""
    if target.machine is not None:
        return f"Runs on {target.machine} in SNDR Control Center."
    if target.provider is not None:
        return f"Answered by {target.provider}, through SNDR Control Center."
    return "Runs on this machine in SNDR Control Center."


def _entry(target: Target, place: int) -> dict[str, Any]:
    return {
        "slug": target.name,
        "display_name": target.name,
        "description": described(target),
        "default_reasoning_level": None,
        "supported_reasoning_levels": [],
        "shell_type": "shell_command",
        "visibility": "list",
        "supported_in_api": True,
        "priority": place,
        "upgrade": None,
        "base_instructions": "",
        "supports_reasoning_summaries": False,
        "support_verbosity": False,
        "default_verbosity": None,
        "apply_patch_tool_type": None,
        "truncation_policy": {
            "mode": "tokens",
            # A small context must not be filled by one file that is read.
            "limit": min(_OUTPUT_OF_TOOLS, target.context // _SHARE_OF_CONTEXT),
        },
        "supports_parallel_tool_calls": bool(target.tools),
        "context_window": target.context,
        "auto_compact_token_limit": None,
        "experimental_supported_tools": [],
        "input_modalities": input_modalities(target),
    }
