"""The event stream, as server-sent events."""

from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import StreamingResponse

from engine_host.api.answers import number
from engine_host.core.event_log import EventLog


def event_stream(events: EventLog, request: Request) -> StreamingResponse:
    """Events after `?after=N` (or `Last-Event-ID`) of the run `?run=ID`; without both, from now on."""
    last = request.headers.get("last-event-id")
    after: int | None = None
    if last is not None and last.isascii() and last.isdigit():
        after = int(last[:20])
    elif "after" in request.query_params:
        after = number(request, "after", 0)

    if after is None:
        after = events.seq  # From the moment of the request, not from when its answer is first read.

    async def chunks() -> AsyncIterator[bytes]:
        yield b": connected\n\n"
        async for event in events.read(after, request.query_params.get("run")):
            name = f"id: {event.seq}\n" if event.seq else ""
            yield f"{name}data: {event.model_dump_json()}\n\n".encode()

    return StreamingResponse(chunks(), media_type="text/event-stream", headers={"cache-control": "no-store"})
