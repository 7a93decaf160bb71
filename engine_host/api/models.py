"""`/v1/models`: the model files of this machine."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine_host.api.answers import answer
from engine_host.api.services import Services


def routes(services: Services) -> list[Route]:
    """The models' routes."""

    async def known(_request: Request) -> Response:
        return answer(await services.models(False))

    async def scan(_request: Request) -> Response:
        return answer(await services.models(True))

    return [Route("/v1/models", known), Route("/v1/models/scan", scan, methods=["POST"])]
