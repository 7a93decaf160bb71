"""`/v1/installations`: vLLM's environments on this machine."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine_host.api.answers import answer
from engine_host.api.services import Services


def routes(services: Services) -> list[Route]:
    """The installations' routes."""

    async def known(_request: Request) -> Response:
        return answer(await services.installations.page())

    async def install(request: Request) -> Response:
        return answer(services.installations.install(request.path_params["id"]), 202)

    async def remove(request: Request) -> Response:
        return answer(services.installations.remove(request.path_params["id"]), 202)

    return [
        Route("/v1/installations", known),
        Route("/v1/installations/{id}", install, methods=["POST"]),
        Route("/v1/installations/{id}", remove, methods=["DELETE"]),
    ]
