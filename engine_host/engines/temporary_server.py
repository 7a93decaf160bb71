"""A llama-server for as long as a measurement or a test lasts."""

import asyncio
import contextlib
import os
import signal
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx

from engine_host._errors import HostError
from engine_host.engines.llamacpp import STRIPPED_ENVIRONMENT, LlamaCppSettings, command
from engine_host.engines.llamacpp_log import explain_exit
from engine_host.engines.llamacpp_servers import ServerCapabilities
from engine_host.engines.llamacpp_status import LlamaCppAdapter
from engine_host.protocol.errors import Reason


@dataclass(frozen=True, slots=True)
class TemporaryServer:
    """A server that answers; `log` is the file it writes to."""

    client: httpx.AsyncClient
    pid: int
    log: Path
    ready_after: float


@contextlib.asynccontextmanager
async def temporary_server(
    server: ServerCapabilities, settings: LlamaCppSettings, timeout: float = 120.0
) -> AsyncIterator[TemporaryServer]:
    """Starts a server in a folder of its own, yields it when its model is loaded, and ends it for certain.

    Raises `HostError` with the reason for which it did not start, or `engine_start_timeout`.
    """
    with tempfile.TemporaryDirectory(prefix="sndr-") as name:
        folder = Path(name)
        socket, log = folder / "engine.sock", folder / "engine.log"
        argv, added = command(settings, server, socket)
        kept = {key: value for key, value in os.environ.items() if not key.startswith(STRIPPED_ENVIRONMENT)}
        started = time.monotonic()
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                env={**kept, **added},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=descriptor,
                stderr=descriptor,
                start_new_session=True,
            )
        finally:
            os.close(descriptor)
        transport = httpx.AsyncHTTPTransport(uds=str(socket), limits=httpx.Limits(max_connections=None))
        try:
            async with httpx.AsyncClient(transport=transport, base_url="http://engine") as client:
                await _until_healthy(client, process, log, settings, server, timeout)
                ready = time.monotonic() - started
                yield TemporaryServer(client, process.pid, log, ready)
        finally:
            await asyncio.shield(_end(process))


async def _until_healthy(
    client: httpx.AsyncClient,
    process: asyncio.subprocess.Process,
    log: Path,
    settings: LlamaCppSettings,
    server: ServerCapabilities,
    timeout: float,
) -> None:
    adapter = LlamaCppAdapter()
    end = time.monotonic() + timeout
    while not await adapter.healthy(client):
        if process.returncode is not None:
            text = await asyncio.to_thread(log.read_text, encoding="utf-8", errors="replace")
            lines = text.splitlines()[-200:]
            raise HostError.from_problem(
                explain_exit(process.returncode, lines, settings.model.name, server.label)
            )
        if time.monotonic() > end:
            raise HostError(
                Reason.ENGINE_START_TIMEOUT,
                f"The server was not ready within {timeout:g} s.",
                evidence={"seconds": timeout},
            )
        await asyncio.sleep(0.05)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 5)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
