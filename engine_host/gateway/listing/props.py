"""`/props` of llama.cpp's server: what Zed and others find out by it, and nothing of this machine.

The engine's own tells the path of the model, its template and every default of sampling.
"""

from collections.abc import Sequence
from typing import Any

from engine_host import __version__
from engine_host.gateway.directory import Target
from engine_host.gateway.openai.listing import find


def props(targets: Sequence[Target], name: str | None) -> dict[str, Any]:
    """Return the properties of one model; without a name of the only one that runs, else those of a router.

    Raises EndpointError(404) for a name that nothing has.
    """
    if name:
        return _of(find(targets, name))
    if len({target.engine for target in targets}) == 1:
        return _of(targets[0])
    # llama.cpp's own server answers so in front of several models; clients then ask for each.
    return {
        "role": "router",
        "max_instances": len(targets),
        "models_autoload": False,
        "default_generation_settings": {"params": {}, "n_ctx": 0},
        "build_info": _BUILD,
    }


_BUILD = f"sndr-{__version__}"


def _of(target: Target) -> dict[str, Any]:
    tools = bool(target.tools)
    return {
        "default_generation_settings": {"params": {}, "n_ctx": target.context},
        "total_slots": target.slots,
        "model_alias": target.name,
        "modalities": {"vision": bool(target.images), "audio": target.audio},
        "chat_template_caps": {"supports_tools": tools, "supports_tool_calls": tools},
        "build_info": _BUILD,
    }
