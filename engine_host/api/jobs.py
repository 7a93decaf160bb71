"""`/v1/jobs`: long work, and its cancel."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine_host.api.answers import answer
from engine_host.api.services import Services
from engine_host.protocol.jobs import JobPage


def routes(services: Services) -> list[Route]:
    """The jobs' routes."""

    async def known(_request: Request) -> Response:
        return answer(JobPage(seq=services.events.seq, jobs=tuple(services.jobs.all())))

    async def one(request: Request) -> Response:
        return answer(services.jobs.get(request.path_params["job"]))

    async def cancel(request: Request) -> Response:
        return answer(services.jobs.cancel(request.path_params["job"]), 202)

    return [
        Route("/v1/jobs", known),
        Route("/v1/jobs/{job}", one),
        Route("/v1/jobs/{job}", cancel, methods=["DELETE"]),
    ]
