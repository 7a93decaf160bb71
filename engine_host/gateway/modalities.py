"""Refusals of what is not text: each engine has words of its own for them, about its own options."""

import json
import re
from typing import Any

from engine_host.gateway.directory import Target
from engine_host.gateway.error_answers import EndpointError
from engine_host.protocol.errors import Reason

_KINDS = {
    "image": "pictures", "image_url": "pictures", "input_image": "pictures",
    "input_audio": "audio", "audio_url": "audio",
    "video_url": "video", "input_video": "video",
    "file": "files", "input_file": "files", "document": "files",
}  # fmt: skip
# Of llama.cpp without a projector, and of vLLM with a model of text; either names its own options too.
_OF_KINDS = re.compile(
    r"mmproj|unsupported content\[\]\.type|'input_\w+' is not supported|model does not support multimodal"
    r"|is not a multimodal model|At most 0 \w+\(s\) may be provided|Unsupported chat content part type"
    r"|'input': 'document'"
)
_DEEPEST = 8
"""Levels from a request to a part of its messages; a picture that a tool answered with is the deepest."""


def unsupported(target: Target, what: str, param: str = "messages") -> EndpointError:
    """Return the refusal of pictures, audio, video or files by a model that takes text alone."""
    return EndpointError(
        400,
        "modality_unsupported",
        f"{target.name} takes no {what}; it was started for text alone. Leave them out, or ask a model that "
        "/v1/models lists with more input_modalities than text.",
        Reason.UNSUPPORTED,
        param,
    )


def check_written(body: dict[str, Any], target: Target) -> None:
    """Refuse a chat whose answer is to be spoken; raises EndpointError 400."""
    wanted = body.get("modalities")
    others = [one for one in wanted if one != "text"] if isinstance(wanted, list) else []
    if others:
        raise EndpointError(
            400,
            "modality_unsupported",
            f"{target.name} answers with text alone, not with {str(others[0])[:40]}.",
            Reason.UNSUPPORTED,
            "modalities",
        )


def why_refused(target: Target, body: bytes, told: str) -> EndpointError | None:
    """Return why an engine refused a request, where `told`, its words, are of what its model cannot take.

    Of a model that takes more than text the engine knows best what of it.
    """
    if target.images or target.audio or not _OF_KINDS.search(told):
        return None
    asked = json.loads(body)
    param = "input" if "input" in asked else "messages"
    what = _held(asked.get(param), _DEEPEST)
    return None if what is None else unsupported(target, what, param)


def _held(value: Any, levels: int) -> str | None:
    """Return the kind of the first part that is no text; None where all is text."""
    if not levels:
        return None
    if isinstance(value, dict):
        kind = value.get("type")
        found = _KINDS.get(kind) if isinstance(kind, str) else None
        return found or _held(value.get("content"), levels - 1) or _held(value.get("output"), levels - 1)
    if isinstance(value, list):
        return next((found for one in value if (found := _held(one, levels - 1)) is not None), None)
    return None
