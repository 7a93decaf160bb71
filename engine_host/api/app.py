"""The control API as one ASGI application."""

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Mount
from starlette.types import ASGIApp

from engine_host.api import (
    engine_patches,
    engines,
    fit,
    host,
    installations,
    jobs,
    logs,
    models,
    patches,
    plans,
    presets,
    render,
    servers,
    settings,
    telemetry,
)
from engine_host.api.answers import on_defect, on_host_error, on_http_error
from engine_host.api.guard import OnceGuard, TokenGuard
from engine_host.api.services import Services
from engine_host.core.errors import HostError

_RESOURCES = (
    host,
    models,
    servers,
    installations,
    plans,
    presets,
    render,
    fit,
    engines,
    engine_patches,
    patches,
    telemetry,
    jobs,
    logs,
    settings,
)


def control_app(services: Services, token: str) -> ASGIApp:
    """The control API for whoever brings the token."""
    app = Starlette(
        routes=[
            *(route for resource in _RESOURCES for route in resource.routes(services)),
            Mount("/openai", services.endpoint_app),
        ],
        exception_handlers={
            HostError: on_host_error,
            HTTPException: on_http_error,
            Exception: on_defect,
        },
    )
    return TokenGuard(OnceGuard(app), token)
