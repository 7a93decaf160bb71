"""CORS headers for the web pages that a person allowed.

Source: the Fetch standard, section 3.2, and Private Network Access for pages of public sites.
"""

from collections.abc import Mapping, MutableMapping
from typing import Any

from starlette.types import Send

_METHODS = "GET, HEAD, POST"
_READABLE = "retry-after, www-authenticate, x-request-id, x-sndr-engine, x-sndr-waiting"
_SECONDS = "600"


def is_preflight(method: str, headers: Mapping[str, str]) -> bool:
    """Return True for a browser's CORS preflight request."""
    return method == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers


async def answer_preflight(send: Send, headers: Mapping[str, str]) -> None:
    """Let the page of `Origin`, which was checked before, send its request with the headers it names."""
    grant = [
        ("access-control-allow-origin", headers["origin"].strip()),
        ("access-control-allow-methods", _METHODS),
        ("access-control-max-age", _SECONDS),
        ("vary", "Origin, Access-Control-Request-Headers"),
    ]
    if requested_headers := headers.get("access-control-request-headers"):
        # SDKs send a dozen headers of their own; a header alone gives nobody more than its request does.
        grant.append(("access-control-allow-headers", requested_headers))
    if headers.get("access-control-request-private-network") == "true":
        grant.append(("access-control-allow-private-network", "true"))
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in grant]
    await send({"type": "http.response.start", "status": 204, "headers": encoded})
    await send({"type": "http.response.body", "body": b""})


def readable_by(send: Send, origin: str) -> Send:
    """A `send` whose answers a page of this origin may read; never for all origins, and without cookies."""
    grant = [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", _READABLE.encode("latin-1")),
        (b"vary", b"Origin"),
    ]

    async def granting(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *grant]}
        await send(message)

    return granting
