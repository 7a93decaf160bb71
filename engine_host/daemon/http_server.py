"""uvicorn, embedded: two servers on one loop, with our own sockets and our own signals."""

import asyncio
import socket
import ssl

import uvicorn
from starlette.types import ASGIApp

from engine_host.daemon.embedded_server import EmbeddedServer
from engine_host.daemon.http_protocol import BoundedProtocol

IDLE_SECONDS = 120
"""How long a connection may wait for its next request.

Whoever asks in the moment in which it is closed gets a reset. The pools of Go and of Rust's reqwest close
theirs after 90 seconds, others earlier: the client has to be the first.
"""
TOLD_IDLE_SECONDS = 100
"""What clients are told of it: Node's `fetch`, and its agents that would wait longer, keep to it."""


class HttpServer:
    """One ASGI application on one listening socket."""

    def __init__(
        self,
        app: ASGIApp,
        listener: socket.socket,
        *,
        name: str,
        protocol: type[BoundedProtocol] = BoundedProtocol,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._listener = listener
        config = uvicorn.Config(
            app,
            http=protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=2,
            timeout_keep_alive=IDLE_SECONDS,
            headers=[("Keep-Alive", f"timeout={TOLD_IDLE_SECONDS}")],
        )
        config.load()
        # uvicorn would read the files itself, with errors that name neither of them.
        config.ssl = tls
        self._server = EmbeddedServer(config)
        self._task = asyncio.create_task(self._server.serve(sockets=[listener]), name=name)

    async def started(self) -> None:
        """Wait until requests are answered. Raises RuntimeError when the server ended instead."""
        while not self._server.started:
            if self._task.done():
                raise RuntimeError(f"{self._task.get_name()} ended at once") from self._task.exception()
            await asyncio.sleep(0.005)  # uvicorn offers no event to wait for

    def refuse_new(self) -> None:
        """Let no new connection in; those that are open go on."""
        for server in self._server.servers:
            server.close()

    async def stop_listening(self) -> None:
        """Free the address; open requests go on until `close`."""
        self._server.end()
        # The server closes it with its next turn, and tells nobody.
        while self._listener.fileno() >= 0 and not self._task.done():  # noqa: ASYNC110
            await asyncio.sleep(0.005)

    async def close(self) -> None:
        """Stop accepting, give open requests two seconds, close."""
        self._server.end()
        await asyncio.gather(self._task, return_exceptions=True)
        self._listener.close()
