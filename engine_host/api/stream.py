"""The event stream, as server-sent events."""

from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import StreamingResponse

from engine_host.api.answers import checked_query
from engine_host.core.event_log import EventLog
from engine_host.protocol.operations.table import EVENTS


def event_stream(events: EventLog, request: Request) -> StreamingResponse:
    """Events after `?after=N` (or `Last-Event-ID`) of the run `?run=ID`; without both, from now on."""
    last = request.headers.get("last-event-id")
    seen = {"after": last[:20]} if last is not None and last.isascii() and last.isdigit() else {}
    asked = checked_query(request, EVENTS.request, seen)
    # Without a number from the moment of the request, not from when its answer is first read.
    after = events.seq if asked.after is None else asked.after

    async def chunks() -> AsyncIterator[bytes]:
        yield b": connected\n\n"
        async for event in events.read(after, asked.run):
            name = f"id: {event.seq}\n" if event.seq else ""
            yield name.encode() + b"data: " + event.data + b"\n\n"

    return StreamingResponse(chunks(), media_type="text/event-stream", headers={"cache-control": "no-store"})
