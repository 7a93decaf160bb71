"""The public endpoint: bound as the settings say, moved when they change, never the reason for no host."""

import asyncio
import logging
from collections.abc import Callable

from starlette.types import ASGIApp

from engine_host.core.addresses import address_from_here, address_from_network, is_loopback
from engine_host.core.errors import HostError
from engine_host.core.findings.table import finding
from engine_host.core.keys.ring import KeyRing
from engine_host.core.settings import EndpointSettings
from engine_host.daemon.descriptors import for_clients, raise_limit
from engine_host.daemon.http_protocol import ConnectionLimits, bounded
from engine_host.daemon.http_server import HttpServer
from engine_host.gateway.access.binding import Bound, bind_endpoint, url_host
from engine_host.gateway.access.moved_port import MovedPort
from engine_host.gateway.access.tls import tls_context
from engine_host.protocol.errors import Reason
from engine_host.protocol.events import EventBase, FindingEvent, HostStateEvent
from engine_host.protocol.host import Endpoint, Reach
from engine_host.protocol.launch.plans import Finding

_log = logging.getLogger(__name__)
_SAFE = "127.0.0.1"


class PublicEndpoint:
    """The listening socket of the public endpoint, and the server on it."""

    def __init__(
        self,
        wanted: Callable[[], EndpointSettings],
        keys: KeyRing,
        publish: Callable[[EventBase], None],
        moved: MovedPort,
    ) -> None:
        self._wanted = wanted
        self._moved = moved
        self._keys = keys
        self._publish = publish
        self._app: ASGIApp | None = None
        self._server: HttpServer | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._moving = asyncio.Lock()
        self.findings: tuple[Finding, ...] = ()
        self._protocol = bounded(ConnectionLimits(connections=min(4096, for_clients(raise_limit()))))

    def bind(self, host: str | None = None, port: int | None = None) -> None:
        """Take the address; one that is given here goes before the settings.

        An address of the settings that cannot be taken gives way to this machine's own, with a finding. Where
        a port gave way to another before and nobody has set one, that other is taken.
        Raises HostError for a given address that cannot be taken, and when no port is free.
        """
        settings = self._wanted()
        self._wanted_port = port or settings.port
        first = port or self._moved.of(settings.port) or settings.port
        findings: list[Finding] = []
        self._tls = None
        try:
            self._tls = tls_context(settings.tls_certificate, settings.tls_key)
            bound = bind_endpoint(host or settings.host, first, has_keys=self._keys.needed)
        except HostError as error:
            tls_is_wrong = self._tls is None and settings.tls_key is not None
            gives_way = tls_is_wrong or settings.host != _SAFE
            if host is not None or error.reason is not Reason.SETTING_INVALID or not gives_way:
                raise
            # Never in the open where it was to be encrypted: this machine alone.
            self._tls = None
            bound = bind_endpoint(_SAFE, first)
            findings.append(_gave_way(error))
        if bound.finding:
            stays = port is None and self._moved.keep(settings.port, bound.port)
            findings.append(_stays(bound.finding, settings.port) if stays else bound.finding)
        self._bound: Bound = bound
        self.findings = tuple(findings)
        for one in findings:
            _log.warning("%s", one.message)
            self._publish(FindingEvent(finding=one))

    async def serve(self, app: ASGIApp) -> None:
        """Answer on the address that was taken."""
        self._app = app
        self._server = HttpServer(
            app, self._bound.socket, name="endpoint", protocol=self._protocol, tls=self._tls
        )
        await self._server.started()
        self._publish(HostStateEvent(state="serving", endpoint=self.describe()))

    async def move(self) -> None:
        """Go where the settings say now; requests under way on the old address get two seconds to end."""
        async with self._moving:
            old = self._server
            if old is None or self._app is None:
                return
            await old.stop_listening()
            closing = asyncio.create_task(old.close(), name="old endpoint")
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
            self.bind()
            await self.serve(self._app)

    def describe(self) -> Endpoint:
        """Tell where editors connect, and who can reach it."""
        host = self._bound.host
        scheme = "http" if self._tls is None else "https"
        rest = f"{self._bound.port}{self._wanted().path}/v1"
        return Endpoint(
            url=f"{scheme}://{url_host(address_from_network(host))}:{rest}",
            local_url=f"{scheme}://{url_host(address_from_here(host))}:{rest}",
            host=self._bound.host,
            port=self._bound.port,
            wanted_port=self._wanted_port,
            reach=Reach.THIS_MACHINE if is_loopback(self._bound.host) else Reach.NETWORK,
            key_required=self._keys.needed,
        )

    async def close(self) -> None:
        """Stop answering."""
        if self._server is not None:
            await self._server.close()
        elif hasattr(self, "_bound"):
            self._bound.socket.close()
        await asyncio.gather(*self._closing)


def _stays(moved: Finding, wanted: int) -> Finding:
    """Return the finding of a port that is kept for the next starts."""
    return finding("port_moved", **{**moved.evidence, "taken": moved.evidence["wanted"], "wanted": wanted})


def _gave_way(error: HostError) -> Finding:
    problem = error.problem
    return finding(
        "endpoint_address",
        reason=problem.reason,
        fix=problem.fix,
        evidence=problem.evidence,
        problem=problem.message,
        address=_SAFE,
    )
