"""`/v1/engines/{id}/patches`: which patch took effect in which process of an engine."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine_host.api.answers import answer
from engine_host.api.services import Services


def routes(services: Services) -> list[Route]:
    """The routes of an engine's patches."""

    async def summary(request: Request) -> Response:
        return answer(services.engine_patches.get(request.path_params["id"]))

    async def probe(request: Request) -> Response:
        return answer(await services.engine_patches.probe(request.path_params["id"]))

    async def without(request: Request) -> Response:
        names = request.path_params
        services.bisections.refuse_others()
        return answer(await services.engine_patches.start_without(names["id"], names["patch"]), 202)

    return [
        Route("/v1/engines/{id}/patches", summary),
        Route("/v1/engines/{id}/patches/probe", probe, methods=["POST"]),
        Route("/v1/engines/{id}/patches/{patch}/start-without", without, methods=["POST"]),
    ]
