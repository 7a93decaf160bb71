"""The headers that a stream begins with, and the one that says who answers."""

from urllib.parse import quote

from engine_host.gateway.directory import Target

# nginx gathers an answer into blocks unless whoever answers says otherwise: words came seconds late.
_AT_ONCE = ((b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no"))
EVENTS = ((b"content-type", b"text/event-stream"), *_AT_ONCE)
_LINES = ((b"content-type", b"application/x-ndjson"), *_AT_ONCE)
_PLAIN = " !#$&()*+,/:;=?@[]"


def headers(target: Target, request_id: str, *, lines: bool) -> list[tuple[bytes, bytes]]:
    """Return the headers of a stream of events, or with `lines` of lines of JSON."""
    kind = _LINES if lines else EVENTS
    return [*kind, (b"x-request-id", request_id.encode()), answerer(target)]


def answerer(target: Target) -> tuple[bytes, bytes]:
    """Return the header that says who answers: an engine by its name, or a provider's host."""
    name = target.provider or target.engine_name
    if target.machine is not None:
        name = f"{name}/{target.engine_name}"
    return b"x-sndr-engine", quote(name, safe=_PLAIN).encode()
