"""Requests that wait for a model are in the request log; the loader and the engine are FAKE."""

import asyncio
from typing import Any

import httpx
import pytest

from engine_host.protocol.engines import RequestState
from engine_host.protocol.errors import Reason
from tests.unit.asynchronous import until
from tests.unit.gateway.asking import CHAT, HELLO
from tests.unit.gateway.loading.fake_loader import TEXTS, FakeLoader, cold, failed, loaded, waiting


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_that_waits_is_in_the_log_at_once_and_keeps_its_place_in_it(
    world: Any, stream: bool
) -> None:
    async def work(served: Any, loader: FakeLoader, client: httpx.AsyncClient) -> None:
        asked = asyncio.create_task(client.post(CHAT, json=HELLO | {"stream": stream}))
        load = await waiting(loader)
        listed = served.gateway.request_log.requests()
        assert [(one.state, one.model, one.engine) for one in listed] == [(RequestState.LOADING, "m", "")]
        await asyncio.sleep(0.1)
        loaded(served, load)
        assert (await asked).is_success
        (now,) = served.gateway.request_log.requests()
        assert (now.id, now.state, now.engine) == (listed[0].id, RequestState.DONE, "e1")
        assert now.waited is not None
        assert now.waited >= 0.1, "the load is part of what its client waited for"
        assert served.states()[:2] == [RequestState.LOADING, RequestState.WAITING]

    cold(world, work)


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_that_waits_is_cancelled_from_the_log(world: Any, stream: bool) -> None:
    async def work(served: Any, loader: FakeLoader, client: httpx.AsyncClient) -> None:
        asked = asyncio.create_task(client.post(CHAT, json=HELLO | {"stream": stream}))
        load = await waiting(loader)
        if stream:
            await asyncio.sleep(0.2)
        (listed,) = served.gateway.request_log.requests()
        assert served.gateway.request_log.cancel(listed.id).state is RequestState.CANCELLED
        assert "was cancelled in SNDR Control Center" in (await asked).text
        assert load.waiting == 0
        assert served.states()[-1] is RequestState.CANCELLED
        assert not served.engine.received

    cold(world, work)


def test_a_wait_that_fails_or_is_left_ends_in_the_log(world: Any) -> None:
    async def work(served: Any, loader: FakeLoader, client: httpx.AsyncClient) -> None:
        asked = [asyncio.create_task(client.post(CHAT, json=HELLO)) for _ in range(2)]
        load = await waiting(loader, 2)
        asked[0].cancel()
        await until(lambda: load.waiting == 1)
        failed(load)
        assert (await asked[1]).status_code == 503
        await until(lambda: not served.gateway.request_log.live())
        ended = {one.state: one.problem for one in served.gateway.request_log.requests()}
        assert ended.keys() == {RequestState.CANCELLED, RequestState.FAILED}
        problem = ended[RequestState.FAILED]
        assert problem is not None
        assert problem.reason is Reason.ENGINE_START_FAILED

    cold(world, work)


def test_a_question_that_takes_no_slot_is_not_in_the_log(world: Any) -> None:
    async def work(served: Any, loader: FakeLoader, client: httpx.AsyncClient) -> None:
        asked = asyncio.create_task(client.post("/tokenize", json=TEXTS["/tokenize"]))
        load = await waiting(loader)
        assert served.gateway.request_log.requests() == ()
        loaded(served, load)
        await asked

    cold(world, work)
