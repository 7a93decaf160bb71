"""`/v1/engines`: start, watch and stop engines, and their requests."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine_host.api.answers import answer, body
from engine_host.api.services import Services
from engine_host.launch.replacing import refuse_replacing
from engine_host.protocol.engines import EnginePage, RequestPage
from engine_host.protocol.plans import StartRequest


def routes(services: Services) -> list[Route]:
    """The engines' routes."""

    async def known(_request: Request) -> Response:
        return answer(EnginePage(seq=services.events.seq, engines=tuple(services.engines.all())))

    async def start(request: Request) -> Response:
        asked = await body(request, StartRequest)
        plan = await services.planner.fresh(asked.plan)
        # Nothing is awaited from here to the start: no other start can come in between.
        services.bisections.refuse_others()
        if not asked.replace:
            refuse_replacing(plan, services.engines.alive())
        return answer(services.engines.start(plan), 202)

    async def one(request: Request) -> Response:
        return answer(services.engines.get(request.path_params["engine"]))

    async def stop(request: Request) -> Response:
        now = request.query_params.get("now", "").lower() in {"1", "true"}
        return answer(services.engines.stop(request.path_params["engine"], now=now), 202)

    async def requests(request: Request) -> Response:
        engine = services.engines.get(request.path_params["engine"])
        return answer(RequestPage(seq=services.events.seq, requests=services.requests.requests(engine.id)))

    async def cancel(request: Request) -> Response:
        return answer(services.requests.cancel(request.path_params["request"]))

    return [
        Route("/v1/engines", known),
        Route("/v1/engines", start, methods=["POST"]),
        Route("/v1/engines/{engine}", one),
        Route("/v1/engines/{engine}", stop, methods=["DELETE"]),
        Route("/v1/engines/{engine}/requests", requests),
        Route("/v1/engines/{engine}/requests/{request}", cancel, methods=["DELETE"]),
    ]
