"""Short questions to an engine that take no slot of it: one request, one JSON object."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from engine_host.core.outside import json_text
from engine_host.gateway import error_answers as faults
from engine_host.gateway.directory import Target
from engine_host.gateway.refusals import refusal
from engine_host.gateway.upstream import AnswerTooLargeError, UpstreamLostError, fetch

_PATIENCE = 30.0
_LONG = 256 << 10
_MOST_VALUES = 8_000_000
"""Values of an answer: a request of 64 MiB holds no more tokens than that with their pieces."""


async def ask(target: Target, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return an engine's answer. Raises EndpointError for its refusal, or when it does not answer."""
    content = json.dumps(body, ensure_ascii=False).encode()
    try:
        async with asyncio.timeout(_PATIENCE):
            status, answer = await fetch(target, "POST", path, content)
    except AnswerTooLargeError as error:
        raise faults.answer_too_large(error.limit) from error
    except UpstreamLostError as error:
        raise faults.engine_unreachable(target.engine_name) from error
    except TimeoutError as error:
        raise faults.engine_busy(target.engine_name) from error
    if status >= 400:
        fault = await refusal(target, path, content, status, answer, None)
        # llama.cpp answers 500 to a token that its vocabulary does not have, and lives on.
        raise faults.unreadable(fault) if status == 500 and target.native_infill else fault
    try:
        if len(answer) < _LONG:
            return json_text.parse_object(answer)
        # A long one is read beside the loop.
        return await asyncio.to_thread(json_text.parse_object, answer, _MOST_VALUES)
    except ValueError as error:
        raise faults.odd_answer() from error
