"""A failure in the middle of a Responses stream, through the gateway in front of FAKE engines."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

from engine_host.core import sse

BODY = {"model": "m", "input": "hi", "stream": True}
CREATED = (
    b"event: response.created\n"
    b'data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_e"}}\n\n'
)
BROKEN = b'data: {"error":{"message":"broken","code":500}}\n\n'


@pytest.mark.parametrize("of_vllm", [True, False])
@pytest.mark.parametrize(
    ("sent", "code", "number"),
    [
        (CREATED, "engine_crashed", 1),
        (CREATED + BROKEN + CREATED, "engine_500", 1),
        (b"", "engine_crashed", 1),
        (CREATED[:45], "engine_crashed", 1),
    ],
)
def test_the_last_event_says_what_happened(
    world: Any, scripts: Any, of_vllm: bool, sent: bytes, code: str, number: int
) -> None:
    async def breaks(engine: Any, body: dict[str, Any], writer: Any) -> None:
        if engine.received[-1][0] == "/health":
            await scripts.answers(200, b"")(engine, body, writer)
            return
        writer.write(scripts.stream_head + (scripts.http_chunk(sent) if sent else b""))

    async def go() -> None:
        async with world(breaks) as served, httpx.AsyncClient(base_url=served.url) as client:
            if of_vllm:
                served.running[:] = [replace(served.running[0], usage_on_request=True, native_infill=False)]
            answer = await client.post("/v1/responses", json=BODY)
            told = [json.loads(one.data) for one in sse.messages([answer.content]) if one.data.endswith("}")]
            last = told[-1]
            assert (last["type"], last["response"]["status"]) == ("response.failed", "failed")
            assert last["sequence_number"] == number
            assert last["response"]["error"]["code"] == code
            assert [one["type"] for one in told].count("response.failed") == 1
            if CREATED in sent:
                assert last["response"]["id"] == "resp_e"

    asyncio.run(go())
