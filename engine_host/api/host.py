"""`/v1/version`, `/v1/host`, `/v1/host/quit`, `/v1/host/stay` and `/v1/events`."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine_host.api.answers import answer, body, empty
from engine_host.api.services import Services
from engine_host.api.stream import event_stream
from engine_host.protocol.base import PROTOCOL_MAJOR, PROTOCOL_MINOR, Version
from engine_host.protocol.host import HostStay


def routes(services: Services) -> list[Route]:
    """The host's routes."""

    async def version(_request: Request) -> Response:
        return answer(
            Version(
                major=PROTOCOL_MAJOR,
                minor=PROTOCOL_MINOR,
                program=services.program,
                run_id=services.events.run_id,
                seq=services.events.seq,
            )
        )

    async def host(_request: Request) -> Response:
        return answer(await services.host_info())

    async def quit_host(_request: Request) -> Response:
        services.quit()
        return empty()

    async def stay(request: Request) -> Response:
        services.stay((await body(request, HostStay)).stays)
        return answer(await services.host_info())

    async def events(request: Request) -> Response:
        return event_stream(services.events, request)

    return [
        Route("/v1/version", version),
        Route("/v1/host", host),
        Route("/v1/host/quit", quit_host, methods=["POST"]),
        Route("/v1/host/stay", stay, methods=["POST"]),
        Route("/v1/events", events),
    ]
