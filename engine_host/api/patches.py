"""`/v1/patches`: the catalogue, preflight, switches, bisection."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine_host.api.answers import answer, body
from engine_host.api.services import Services
from engine_host.protocol.patches import SwitchPatches
from engine_host.protocol.plans import BisectRequest, LaunchRequest
from engine_host.protocol.presets import ResolvePreset


def routes(services: Services) -> list[Route]:
    """The patches' routes."""

    async def known(_request: Request) -> Response:
        return answer(await services.patches.page())

    async def one(request: Request) -> Response:
        return answer(
            await services.patches.detail(request.path_params["id"], request.query_params.get("vllm"))
        )

    async def check(request: Request) -> Response:
        return answer(await services.patches.check(request.query_params.get("vllm")))

    async def switch(request: Request) -> Response:
        return answer(await services.patches.switch(await body(request, SwitchPatches)))

    async def plan(request: Request) -> Response:
        return answer(await services.patches.plan(await body(request, LaunchRequest)))

    async def plan_preset(request: Request) -> Response:
        asked = await body(request, ResolvePreset)
        resolved, sm = await services.presets.resolved_on(asked)
        return answer(await services.patches.plan_preset(resolved, sm))

    async def bisect(request: Request) -> Response:
        return answer(await services.bisections.start(await body(request, BisectRequest)), 202)

    return [
        Route("/v1/patches", known),
        Route("/v1/patches/check", check),
        Route("/v1/patches/switch", switch, methods=["POST"]),
        Route("/v1/patches/plan", plan, methods=["POST"]),
        Route("/v1/patches/plan-preset", plan_preset, methods=["POST"]),
        Route("/v1/patches/bisect", bisect, methods=["POST"]),
        Route("/v1/patches/{id}", one),
    ]
