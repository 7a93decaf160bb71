"""The control API as one ASGI application."""

from collections.abc import Iterable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from engine_host.api.answers import on_client_gone, on_defect, on_host_error, on_http_error
from engine_host.api.guard import OnceGuard, TokenGuard
from engine_host.api.routes import routes
from engine_host.api.stream import event_stream
from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.protocol.operations.table import EVENTS


def control_app(services: Iterable[object], events: EventLog, endpoint: ASGIApp, token: str) -> ASGIApp:
    """The control API for whoever brings the token.

    The methods of `services` perform the operations; `endpoint` is the public endpoint, for the window's
    chat. Raises TypeError when an operation has no function.
    """

    async def stream(request: Request) -> Response:
        return event_stream(events, request)

    app = Starlette(
        routes=[*routes(services), Route(EVENTS.path, stream), Mount("/openai", endpoint)],
        exception_handlers={
            ClientDisconnect: on_client_gone,
            HostError: on_host_error,
            HTTPException: on_http_error,
            Exception: on_defect,
        },
    )
    return TokenGuard(OnceGuard(app), token)
