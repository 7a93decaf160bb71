"""`/v1/presets` and `/v1/catalog`: presets, what they resolve to, changes to a person's own."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine_host.api.answers import answer, body
from engine_host.api.services import Services
from engine_host.protocol.presets import (
    EditPreset,
    ImportPreset,
    JudgePresets,
    LintPreset,
    ResolvePreset,
    SavePreset,
)


def routes(services: Services) -> list[Route]:
    """The catalogue's routes."""
    presets = services.presets

    async def known(_request: Request) -> Response:
        return answer(await presets.page())

    async def entries(_request: Request) -> Response:
        return answer(await presets.entries())

    async def form(_request: Request) -> Response:
        return answer(await presets.form())

    async def one(request: Request) -> Response:
        return answer(await presets.detail(request.path_params["id"]))

    async def file(request: Request) -> Response:
        return answer(await presets.file(request.path_params["id"]))

    async def resolve(request: Request) -> Response:
        return answer(await presets.resolve(await body(request, ResolvePreset)))

    async def lint(request: Request) -> Response:
        return answer(await presets.lint(await body(request, LintPreset)))

    async def edit(request: Request) -> Response:
        return answer(await presets.edit(await body(request, EditPreset)))

    async def judge(request: Request) -> Response:
        return answer(await services.verdicts.judge(await body(request, JudgePresets)))

    async def verify(request: Request) -> Response:
        return answer(await services.checks.verify(request.path_params["id"]), 202)

    async def save(request: Request) -> Response:
        return answer(await presets.save(request.path_params["id"], await body(request, SavePreset)))

    async def remove(request: Request) -> Response:
        return answer(await presets.remove(request.path_params["id"]))

    async def export(request: Request) -> Response:
        return answer(await presets.export(request.path_params["id"]))

    async def take_in(request: Request) -> Response:
        return answer(await presets.take_in(await body(request, ImportPreset)))

    return [
        Route("/v1/catalog", entries),
        Route("/v1/catalog/form", form),
        Route("/v1/presets", known),
        Route("/v1/presets/lint", lint, methods=["POST"]),
        Route("/v1/presets/edit", edit, methods=["POST"]),
        Route("/v1/presets/resolve", resolve, methods=["POST"]),
        Route("/v1/presets/verdicts", judge, methods=["POST"]),
        Route("/v1/presets/import", take_in, methods=["POST"]),
        Route("/v1/presets/{id}", one),
        Route("/v1/presets/{id}", save, methods=["PUT"]),
        Route("/v1/presets/{id}", remove, methods=["DELETE"]),
        Route("/v1/presets/{id}/file", file),
        Route("/v1/presets/{id}/verify", verify, methods=["POST"]),
        Route("/v1/presets/{id}/export", export),
    ]
