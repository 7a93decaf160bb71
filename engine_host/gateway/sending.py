"""Whole answers on their way to a client: their headers, and errors in the form that it reads."""

import json
from typing import Any

from starlette.types import Send

from engine_host.gateway import error_answers as faults


async def send_json(
    send: Send,
    status: int,
    body: bytes | dict[str, Any],
    request_id: str,
    headers: tuple[tuple[str, str], ...] = (),
) -> None:
    """Send one whole JSON answer."""
    data = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
    await send_whole(send, status, data, request_id, headers)


async def send_whole(
    send: Send,
    status: int,
    body: bytes,
    request_id: str,
    headers: tuple[tuple[str, str], ...] = (),
    kind: str = "application/json",
) -> None:
    """Send one whole answer of any type."""
    lines = [
        ("content-type", kind),
        ("content-length", str(len(body))),
        ("x-request-id", request_id),
        *headers,
    ]
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in lines]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})


async def send_fault(send: Send, fault: faults.EndpointError, request_id: str, form: faults.Form) -> None:
    """Send an error with its status, and when to try again."""
    headers = list(fault.headers)
    if fault.retry_after is not None:
        headers.append(("retry-after", str(fault.retry_after)))
    else:
        # The SDKs of OpenAI and Anthropic send again what met a 500, Claude Code even what met a 401, for
        # half a minute; nothing says that it would help.
        headers.append(("x-should-retry", "false"))
    if form is faults.Form.ANTHROPIC:
        headers.append(("request-id", request_id))
    await send_json(send, fault.status, fault.encoded(form, request_id), request_id, tuple(headers))
