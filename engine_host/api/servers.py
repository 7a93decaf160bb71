"""`/v1/servers`: the llama.cpp servers that can run models here."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine_host.api.answers import answer, body
from engine_host.api.services import Services
from engine_host.protocol.engines import ServerBuild


def routes(services: Services) -> list[Route]:
    """The servers' routes."""

    async def known(_request: Request) -> Response:
        return answer(await services.servers.page())

    async def build(request: Request) -> Response:
        asked = await body(request, ServerBuild)
        return answer(services.servers.build(asked.backend), 202)

    async def compare(_request: Request) -> Response:
        return answer(services.servers.compare(), 202)

    return [
        Route("/v1/servers", known),
        Route("/v1/servers/build", build, methods=["POST"]),
        Route("/v1/servers/compare", compare, methods=["POST"]),
    ]
