"""`/v1/logs`: log lines by source and level."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine_host.api.answers import answer, number
from engine_host.api.services import Services
from engine_host.core.errors import HostError
from engine_host.protocol.base import Severity
from engine_host.protocol.errors import Reason
from engine_host.protocol.logs import LogPage

_MOST = 10_000


def routes(services: Services) -> list[Route]:
    """The logs' routes."""

    async def lines(request: Request) -> Response:
        level = request.query_params.get("severity", "info")
        try:
            severity = Severity(level)
        except ValueError as error:
            raise HostError(
                Reason.BAD_REQUEST, f"severity must be info, warning or error, not {level!r}."
            ) from error
        found = services.log_buffer.read(
            request.query_params.get("source") or None,
            severity,
            number(request, "after", 0),
            max(0, min(number(request, "limit", 1000), _MOST)),
        )
        return answer(
            LogPage(seq=services.events.seq, lines=tuple(found), sources=services.log_buffer.sources())
        )

    return [Route("/v1/logs", lines)]
