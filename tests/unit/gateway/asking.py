"""Requests to a gateway in front of a FAKE engine, and its errors."""

import asyncio
from typing import Any

import httpx

CHAT = "/v1/chat/completions"
HELLO: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def ask(world: Any, method: str, path: str, prepare: Any = None, **request: Any) -> httpx.Response:
    """One request to a gateway in front of a FAKE engine."""

    async def go() -> httpx.Response:
        async with world() as served, httpx.AsyncClient(base_url=served.url) as client:
            served.engine.go.set()
            if prepare:
                prepare(served)
            answer = await client.request(method, path, **request)
            assert answer.headers["x-request-id"].startswith("req_")
            return answer

    return asyncio.run(go())


def preflight(world: Any, prepare: Any, headers: dict[str, str]) -> httpx.Response:
    """Return the answer to a browser's preflight request; it has no body, and so no id."""

    async def go() -> httpx.Response:
        async with world() as served, httpx.AsyncClient(base_url=served.url) as client:
            prepare(served)
            return await client.request("OPTIONS", CHAT, headers=headers)

    return asyncio.run(go())


def code_of(answer: httpx.Response) -> tuple[int, str]:
    """Status and code, after checking that the object is whole."""
    error = answer.json()["error"]
    assert set(error) >= {"message", "type", "param", "code", "src"}
    assert error["message"]
    return answer.status_code, error["code"]
