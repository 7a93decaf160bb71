"""Connections to the local socket end with the client, whatever they are doing."""

import asyncio
from pathlib import Path

import httpx
import pytest

from engine_host.client import local_http
from engine_host.client.local_http import LocalTransport
from engine_host.client.local_socket import open_local
from tests.unit.asynchronous import run, until


def test_a_connection_that_is_being_made_when_its_client_closes_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """httpcore's pool forgets it, and a request would go out on a socket that nobody closes."""
    path = str(tmp_path / "socket")

    async def work() -> None:
        connecting, go_on = asyncio.Event(), asyncio.Event()
        ends: list[bytes] = []

        async def slowly(path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
            connecting.set()
            await go_on.wait()
            return await open_local(path)

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            ends.append(await reader.read())
            writer.close()

        monkeypatch.setattr(local_http, "open_local", slowly)
        async with await asyncio.start_unix_server(serve, path):
            client = httpx.AsyncClient(transport=LocalTransport(path), base_url="http://host")
            asked = asyncio.create_task(client.get("/"))
            await connecting.wait()
            await client.aclose()
            go_on.set()
            with pytest.raises(httpx.ConnectError):
                await asked
            await until(lambda: ends)
            assert ends == [b""], "closed without a request on it"

    run(work())
