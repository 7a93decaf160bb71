"""LM Studio's requests to load and to end a model, and their answers.

Source: lmstudio.ai/docs/developer/rest. What has no meaning here of what a load may be given is passed over.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from engine_host.gateway import error_answers as faults
from engine_host.gateway.directory import Target
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.errors import Reason


@dataclass(frozen=True)
class LoadWish:
    """A model to load: with these settings for this load alone; `echo` asks to be told what holds."""

    name: str
    overrides: Overrides
    echo: bool

    @property
    def is_other(self) -> bool:
        """True if settings are wanted that the model's own entry may not have."""
        return self.overrides != Overrides()


def load_wish(body: Mapping[str, Any]) -> LoadWish:
    """Read a request to load; raises EndpointError 400."""
    given: dict[str, Any] = {}
    length, flash = body.get("context_length"), body.get("flash_attention")
    if length is not None:
        if not isinstance(length, int) or isinstance(length, bool):
            raise faults.invalid("context_length must be a whole number.", param="context_length")
        given["context"] = length
    if flash is not None:
        if not isinstance(flash, bool):
            raise faults.invalid("flash_attention must be true or false.", param="flash_attention")
        given["flash_attention"] = "on" if flash else "off"
    try:
        overrides = Overrides.model_validate(given)
    except ValidationError as error:
        raise faults.invalid("context_length is out of its bounds.", param="context_length") from error
    return LoadWish(_text(body, "model"), overrides, body.get("echo_load_config") is True)


def unload_wish(body: Mapping[str, Any]) -> str:
    """Read which model is to end; raises EndpointError 400."""
    return _text(body, "instance_id" if "instance_id" in body else "model")


def loaded(wish: LoadWish, target: Target, seconds: float) -> dict[str, Any]:
    """Return the answer to a load."""
    answer: dict[str, Any] = {
        "type": "embedding" if target.embeddings else "llm",
        "instance_id": target.name,
        "load_time_seconds": round(seconds, 3),
        "status": "loaded",
    }
    if wish.echo:
        answer["load_config"] = {"context_length": target.context, "parallel": target.slots}
    return answer


def not_on_demand(name: str) -> faults.EndpointError:
    """Nobody has allowed requests to load a model of this name."""
    return faults.EndpointError(
        404,
        "model_not_found",
        f"{name[:200]!r} may not be loaded by a request. Allow it with: sndr run MODEL --on-demand",
        Reason.NOT_FOUND,
        "model",
    )


def started_by_hand(name: str) -> faults.EndpointError:
    """A model runs that no request loaded: somebody started it, and it stays."""
    return faults.EndpointError(
        409,
        "started_by_hand",
        f"{name} was started by hand, so no request ends it. End it with: sndr stop {shlex.quote(name)}",
        Reason.CONFLICT,
        "instance_id",
    )


def loaded_otherwise(target: Target) -> faults.EndpointError:
    """The model is loaded, with another context than is asked for."""
    return faults.EndpointError(
        409,
        "loaded_otherwise",
        f"{target.name} is loaded with a context of {target.context} tokens. Unload it first, with: "
        f"sndr stop {shlex.quote(target.name)}",
        Reason.CONFLICT,
        "context_length",
    )


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise faults.invalid(f"{name} must be a text: the id of a model.", param=name)
    return value
