"""A llama-server for as long as a measurement or a test lasts."""

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx

from engine_host.core.errors import HostError
from engine_host.core.likely_causes import slow_start
from engine_host.engines.llamacpp.command import STRIPPED_ENVIRONMENT, LlamaCppStart, command
from engine_host.engines.llamacpp.log import explain_exit
from engine_host.engines.llamacpp.servers import ServerCapabilities
from engine_host.engines.llamacpp.status import LlamaCppAdapter
from engine_host.engines.process.spawn import EngineProcess
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr


@dataclass(frozen=True, slots=True)
class TemporaryServer:
    """A server that answers on its Unix socket; `log` is the file it writes to."""

    client: httpx.AsyncClient
    socket: str
    pid: int
    log: Path
    ready_after: float


@contextlib.asynccontextmanager
async def temporary_server(
    server: ServerCapabilities, start: LlamaCppStart, timeout: float = 120.0
) -> AsyncIterator[TemporaryServer]:
    """Starts a server in a folder of its own, yields it when its model is loaded, and ends it for certain.

    Raises `HostError` with the reason for which it did not start, or `engine_start_timeout`.
    """
    with tempfile.TemporaryDirectory(prefix="sndr-") as name:
        folder = Path(name)
        socket, log = folder / "engine.sock", folder / "engine.log"
        argv, added = command(start, server, socket)
        started = time.monotonic()
        process = EngineProcess.start(argv, added, log, keep=False, without=STRIPPED_ENVIRONMENT)
        # The server closes a connection that was idle for 5 s: one must not be used again just then.
        limits = httpx.Limits(max_connections=None, keepalive_expiry=2.0)
        transport = httpx.AsyncHTTPTransport(uds=str(socket), verify=False, trust_env=False, limits=limits)
        try:
            async with httpx.AsyncClient(transport=transport, base_url="http://engine") as client:
                await _until_healthy(client, process, start, server, timeout)
                ready = time.monotonic() - started
                yield TemporaryServer(client, str(socket), process.pid, log, ready)
        finally:
            await asyncio.shield(_end(process))


async def _until_healthy(
    client: httpx.AsyncClient,
    process: EngineProcess,
    start: LlamaCppStart,
    server: ServerCapabilities,
    timeout: float,
) -> None:
    adapter = LlamaCppAdapter()
    end = time.monotonic() + timeout
    while not await adapter.healthy(client):
        if not process.running:
            await process.log_written()
            text = await asyncio.to_thread(process.log.read_text, encoding="utf-8", errors="replace")
            lines = text.splitlines()[-200:]
            raise HostError.from_problem(
                explain_exit(process.exit_code, lines, Path(start.model).name, server.label)
            )
        if time.monotonic() > end:
            raise HostError(
                Reason.ENGINE_START_TIMEOUT,
                tr("The server was not ready within {timeout:g} s.", timeout=timeout),
                cause=slow_start(),
                fix="Try again in a minute.",
                evidence={"seconds": timeout},
            )
        await asyncio.sleep(0.05)


async def _end(process: EngineProcess) -> None:
    # After a SIGTERM llama-server waits for clients with an open stream; a measurement has no others.
    await process.stop(grace=0.5)
    await process.release()
