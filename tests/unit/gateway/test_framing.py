"""What a request says of its body before it comes, and what streams say to a proxy on their way."""

import asyncio
from typing import Any

import httpx
import pytest

from engine_host.gateway import Limits
from tests.unit.gateway.asking import CHAT, HELLO


@pytest.mark.parametrize(
    ("said", "status", "code"),
    [
        (b"content-length: 99999999999\r\nexpect: 100-continue", b"413", b"request_too_large"),
        (b"content-length: " + b"9" * 18, b"413", b"request_too_large"),
        (b"content-length: 1001", b"413", b"request_too_large"),
        (b"transfer-encoding: gzip, chunked", b"415", b"unsupported_encoding"),
    ],
)
def test_a_body_that_would_be_refused_is_refused_before_it_comes(
    world: Any, said: bytes, status: bytes, code: bytes
) -> None:
    async def go() -> None:
        async with world(limits=Limits(body=1000)) as served:
            port = httpx.URL(served.url).port or 0
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            head = b"POST %b HTTP/1.1\r\nhost: 127.0.0.1:%d\r\n%b\r\n\r\n" % (CHAT.encode(), port, said)
            writer.write(head)
            async with asyncio.timeout(5):
                assert (await reader.readline()).split()[1] == status
                assert code in await reader.readuntil(b"}")
            writer.close()

    asyncio.run(go())


@pytest.mark.parametrize("path", [CHAT, "/v1/messages", "/v1/responses", "/api/chat"])
def test_a_stream_asks_proxies_to_pass_it_on_at_once(world: Any, path: str) -> None:
    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url) as client:
            served.engine.go.set()
            body = {**HELLO, "input": "hello", "max_tokens": 8, "stream": True}
            async with client.stream("POST", path, json=body) as answer:
                assert answer.status_code == 200
                assert answer.headers["x-accel-buffering"] == "no"

    asyncio.run(go())
