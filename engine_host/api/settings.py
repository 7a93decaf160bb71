"""`/v1/settings`: settings with the layer of each value."""

import asyncio

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine_host.api.answers import answer, body
from engine_host.api.services import Services
from engine_host.operations.setting_checks import check_endpoint, doubts
from engine_host.protocol.plans import Finding
from engine_host.protocol.settings import SettingPage, SettingsChange


def routes(services: Services) -> list[Route]:
    """The settings' routes."""

    def page(warnings: tuple[Finding, ...] = ()) -> Response:
        return answer(
            SettingPage(
                seq=services.events.seq,
                file=str(services.settings.path),
                settings=services.settings.settings(),
                warnings=warnings,
            )
        )

    async def known(_request: Request) -> Response:
        return page()

    async def change(request: Request) -> Response:
        asked = await body(request, SettingsChange)
        if {"endpoint.host", "endpoint.port"} & set(asked.values):
            now = services.endpoint()
            # A name may have to be looked up in the network.
            await asyncio.to_thread(check_endpoint, asked.values, now.host, now.port)
        changed = services.settings.change(asked.values)
        if changed:
            await services.settings_changed(changed)
        own_patches = services.settings.path.parent / "patches"
        return page(await asyncio.to_thread(doubts, asked.values, own_patches))

    return [Route("/v1/settings", known), Route("/v1/settings", change, methods=["PUT"])]
