"""`/v1/render`: starts written down for shells, containers, service managers and clusters."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine_host.api.answers import answer, body
from engine_host.api.services import Services
from engine_host.protocol.deploy import RenderRequest


def routes(services: Services) -> list[Route]:
    """The one route; nothing is kept."""

    async def render(request: Request) -> Response:
        return answer(await services.deploys.render(await body(request, RenderRequest)))

    return [Route("/v1/render", render, methods=["POST"])]
