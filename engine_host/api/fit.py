"""`/v1/fit`: what a model needs on a machine, and how well that was predicted so far."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine_host.api.answers import answer, body
from engine_host.api.services import Services
from engine_host.protocol.fit import FitRequest, ReadFromHub


def routes(services: Services) -> list[Route]:
    """The routes of fit."""

    async def fit(request: Request) -> Response:
        return answer(await services.fit.fit(await body(request, FitRequest)))

    async def starts(_request: Request) -> Response:
        return answer(await services.fit.measured())

    async def known(_request: Request) -> Response:
        return answer(await services.hub.page())

    async def read(request: Request) -> Response:
        return answer(await services.hub.read(await body(request, ReadFromHub)))

    return [
        Route("/v1/fit", fit, methods=["POST"]),
        Route("/v1/fit/starts", starts),
        Route("/v1/fit/hub", known),
        Route("/v1/fit/hub", read, methods=["POST"]),
    ]
