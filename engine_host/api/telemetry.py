"""`/v1/telemetry`: measured series by name, range and step."""

import math

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine_host.api.answers import answer
from engine_host.api.services import Services
from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason


def routes(services: Services) -> list[Route]:
    """The telemetry's routes."""

    async def series(request: Request) -> Response:
        names = tuple(name for name in request.query_params.get("names", "").split(",") if name)
        return answer(services.telemetry(names, _seconds(request, "since"), _seconds(request, "step")))

    return [Route("/v1/telemetry", series)]


def _seconds(request: Request, name: str) -> float | None:
    text = request.query_params.get(name)
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise HostError(Reason.BAD_REQUEST, f"{name} must be a number of seconds, not {text!r}.")
    return seconds
