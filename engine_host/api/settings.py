"""`/v1/settings`: settings with the layer of each value."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine_host.api.answers import answer, body
from engine_host.api.services import Services
from engine_host.protocol.settings import SettingPage, SettingsChange


def routes(services: Services) -> list[Route]:
    """The settings' routes."""

    def page() -> Response:
        return answer(
            SettingPage(
                seq=services.events.seq,
                file=str(services.settings.path),
                settings=services.settings.settings(),
            )
        )

    async def known(_request: Request) -> Response:
        return page()

    async def change(request: Request) -> Response:
        asked = await body(request, SettingsChange)
        changed = services.settings.change(asked.values)
        if changed:
            await services.settings_changed(changed)
        return page()

    return [Route("/v1/settings", known), Route("/v1/settings", change, methods=["PUT"])]
