"""A provider over TLS: asked where this machine trusts its certificate, and nowhere else."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine_host.gateway import upstream
from engine_host.gateway.access.tls import tls_context
from engine_host.protocol.endpoint.routes import Provider, RouteTargets
from tests.certificates import CERTIFICATE, write

CHAT = "/v1/chat/completions"
HELLO = {"model": "out", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """What is trusted is read again."""
    upstream._trust.cache_clear()
    yield
    upstream._trust.cache_clear()


def ask(world: Any, home: Path, *, path: str = "/v1") -> tuple[httpx.Response, Any]:
    """Ask a provider with the tests' certificate; the answer, and what came there."""

    async def go() -> tuple[httpx.Response, Any]:
        async with world() as served:
            served.engine.go.set()
            server = await asyncio.start_server(
                served.engine.handle, "127.0.0.1", 0, ssl=tls_context(*write(home))
            )
            port = server.sockets[0].getsockname()[1]
            provider = Provider(url=f"https://127.0.0.1:{port}{path}", model="large", context=4096)
            served.routes.put("out", RouteTargets(provider=provider, allow_remote=True))
            try:
                async with httpx.AsyncClient(base_url=served.url, trust_env=False) as client:
                    answer = await client.post(CHAT, json=HELLO)
            finally:
                server.close()
                await server.wait_closed()
            return answer, served.engine.received

    return asyncio.run(go())


def test_a_stranger_gets_nothing(world: Any, home: Path) -> None:
    answer, received = ask(world, home)
    assert answer.status_code == 502
    assert answer.json()["error"]["code"] == "provider_unreachable"
    assert received == []


@pytest.mark.parametrize(
    ("base", "path"),
    [
        ("/v1", CHAT),
        ("/api/v1/", "/api/v1/chat/completions"),
        ("", "/chat/completions"),
        ("/v1beta/openai", "/v1beta/openai/chat/completions"),
    ],
)
def test_a_trusted_one_is_asked_below_its_base_url(
    world: Any, home: Path, monkeypatch: pytest.MonkeyPatch, base: str, path: str
) -> None:
    trusted = home / "trusted.pem"
    trusted.write_text(CERTIFICATE)
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    answer, received = ask(world, home, path=base)
    assert answer.status_code == 200, answer.text
    assert received[0][0] == path
