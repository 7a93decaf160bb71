"""The context that an engine lists for its model is what is promised of it."""

import asyncio
import time

import httpx
import pytest

from engine_host.engines.readiness import Probe, verify_ready
from engine_host.protocol.engines import Verification


@pytest.mark.parametrize(
    ("said", "context"), [(4096, 4096), (None, None), ("many", None), (True, None), (0, None)]
)
def test_what_the_engine_lists_is_taken(said: object, context: int | None) -> None:
    assert verified(said).context == context


def test_a_start_lasts_as_long_when_the_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert verified(4096).ready_after >= 5.0, "it began five seconds ago"


def verified(said: object) -> Verification:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/models":
            return httpx.Response(200, json={"data": [{"id": "x", "max_model_len": said}]})
        return httpx.Response(200, json={"usage": {"completion_tokens": 1}})

    async def run() -> Verification:
        transport = httpx.MockTransport(answer)
        async with httpx.AsyncClient(transport=transport, base_url="http://engine") as client:
            probe = Probe("x", "vllm:", 1.0, False, {})
            return await verify_ready(client, probe, time.monotonic() - 5.0)

    return asyncio.run(run())
