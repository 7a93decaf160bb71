"""`/v1/plans`: launch requests become frozen plans."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine_host.api.answers import answer, body
from engine_host.api.services import Services
from engine_host.protocol.plans import LaunchRequest


def routes(services: Services) -> list[Route]:
    """The plans' routes."""

    async def make(request: Request) -> Response:
        return answer(await services.planner.plan(await body(request, LaunchRequest)), 201)

    async def one(request: Request) -> Response:
        return answer(services.planner.get(request.path_params["plan"]))

    return [Route("/v1/plans", make, methods=["POST"]), Route("/v1/plans/{plan}", one)]
