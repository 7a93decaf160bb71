"""Requests for a model that has to be loaded first, in each dialect; the loader and the engine are FAKE."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

from engine_host.gateway import Target
from engine_host.gateway.directory import LOADING
from engine_host.gateway.loading.wait import load_failed, wait_limit
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.engines import RequestState
from engine_host.protocol.errors import Problem, Reason
from tests.unit.asynchronous import until
from tests.unit.gateway.asking import CHAT, HELLO, code_of
from tests.unit.gateway.loading.fake_loader import TEXTS, FakeLoader, cold, failed, loaded, waiting


def test_a_request_waits_and_is_answered(world: Any) -> None:
    async def work(served: Any, loader: FakeLoader, client: httpx.AsyncClient) -> None:
        asked = asyncio.create_task(client.post(CHAT, json=HELLO))
        load = await waiting(loader)
        assert served.gateway._admission.waiting("loading m") == 1
        loaded(served, load)
        answer = await asked
        assert answer.json()["choices"][0]["message"]["content"] == "a b"
        assert (load.waiting, loader.touched) == (0, [("e1", None)])
        again = await client.post(CHAT, json=HELLO)
        assert again.is_success
        assert len(loader.joins) == 1, "it runs"

    cold(world, work)


def test_a_stream_gets_pings_and_then_its_answer_once(world: Any) -> None:
    async def work(served: Any, loader: FakeLoader, client: httpx.AsyncClient) -> None:
        asked = asyncio.create_task(client.post(CHAT, json=HELLO | {"stream": True}))
        load = await waiting(loader)
        await asyncio.sleep(0.3)
        loaded(served, load)
        answer = await asked
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/event-stream"
        assert answer.headers["x-request-id"].startswith("req_")
        assert answer.text.count(": loading\n\n") >= 2
        assert answer.text.endswith("data: [DONE]\n\n")

    cold(world, work)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/embeddings", {"input": "hi"}),
        ("/v1/rerank", {"query": "hi", "documents": ["hi"]}),
        ("/v1/messages/count_tokens", {"messages": HELLO["messages"]}),
        ("/v1/responses/input_tokens", {"input": "hi"}),
        ("/v1/chat/completions/input_tokens", {"messages": HELLO["messages"]}),
        ("/tokenize", {"content": "hi"}),
        ("/apply-template", {"messages": HELLO["messages"]}),
        ("/api/embed", {"input": "hi"}),
    ],
)
def test_a_path_without_a_stream_gets_no_pings(world: Any, path: str, body: dict[str, Any]) -> None:
    async def work(served: Any, loader: FakeLoader, client: httpx.AsyncClient) -> None:
        asked = asyncio.create_task(client.post(path, json={"model": "m", "stream": True, **body}))
        load = await waiting(loader)
        await asyncio.sleep(0.2)
        loaded(served, load)
        answer = await asked
        assert ": loading" not in answer.text
        assert answer.status_code != 200 or answer.text.strip()

    cold(world, work)


@pytest.mark.parametrize("path", TEXTS)
def test_a_failed_load_is_told_in_each_form(world: Any, path: str) -> None:
    async def work(served: Any, loader: FakeLoader, client: httpx.AsyncClient) -> None:
        asked = asyncio.create_task(client.post(path, json=TEXTS[path]))
        failed(await waiting(loader))
        answer = await asked
        assert answer.status_code == 503
        said = answer.json()
        error = said if path == "/api/chat" else said["error"]
        assert (error["code"], error["src"]) == ("engine_start_failed", "sndr")
        assert answer.headers["x-should-retry"] == "false"

    cold(world, work)


@pytest.mark.parametrize(
    ("path", "event"), [(CHAT, ""), ("/v1/messages", "error"), ("/v1/responses", "response.failed")]
)
def test_a_load_that_fails_after_pings_is_the_last_frame(world: Any, path: str, event: str) -> None:
    async def work(served: Any, loader: FakeLoader, client: httpx.AsyncClient) -> None:
        asked = asyncio.create_task(client.post(path, json=TEXTS[path] | {"stream": True}))
        load = await waiting(loader)
        await asyncio.sleep(0.2)
        failed(load)
        answer = await asked
        assert answer.status_code == 200
        last = [frame for frame in answer.text.split("\n\n") if frame and not frame.startswith(":")][-1]
        names = [line for line in last.splitlines() if line.startswith("event:")]
        assert names == ([f"event: {event}"] if event else [])
        data = json.loads(next(line for line in last.splitlines() if line.startswith("data:"))[5:])
        error = data["response"]["error"] if "response" in data else data["error"]
        assert error["code"] == "engine_start_failed"

    cold(world, work)


def test_to_be_loaded_is_all_that_an_empty_request_of_ollama_asks(world: Any) -> None:
    async def work(served: Any, loader: FakeLoader, client: httpx.AsyncClient) -> None:
        asked = asyncio.create_task(client.post("/api/generate", json={"model": "m"}))
        load = await waiting(loader)
        loaded(served, load)
        assert (await asked).is_success
        await until(lambda: not served.gateway.request_log.live())
        assert served.states() == [RequestState.LOADING, RequestState.DONE]

    cold(world, work)


def test_a_full_queue_and_a_client_that_leaves(world: Any) -> None:
    async def work(served: Any, loader: FakeLoader, client: httpx.AsyncClient) -> None:
        asked = [asyncio.create_task(client.post(CHAT, json=HELLO)) for _ in range(3)]
        load = await waiting(loader, 3)
        full = await client.post(CHAT, json=HELLO)
        assert code_of(full) == (429, "queue_full")
        assert full.headers["retry-after"] == "5"
        asked[0].cancel()
        await until(lambda: load.waiting == 2)
        assert served.gateway._admission.waiting("loading m") == 2
        loaded(served, load)
        assert [answer.status_code for answer in await asyncio.gather(*asked[1:])] == [200, 200]
        assert loader.left == [False, False, False]

    cold(world, work)


def test_who_may_not_wait_comes_again_and_the_load_goes_on(world: Any) -> None:
    async def work(served: Any, loader: FakeLoader, client: httpx.AsyncClient) -> None:
        answer = await client.post(CHAT, json=HELLO, headers={"prefer": "respond-async, wait=0"})
        assert code_of(answer) == (503, "loading")
        assert int(answer.headers["retry-after"]) > 0
        assert loader.left == [True]

    cold(world, work)


def test_the_end_of_the_program_ends_the_wait(world: Any) -> None:
    async def work(served: Any, loader: FakeLoader, client: httpx.AsyncClient) -> None:
        asked = asyncio.create_task(client.post(CHAT, json=HELLO))
        (await waiting(loader)).done.cancel()
        assert code_of(await asked) == (503, "draining")

    cold(world, work)


def test_a_request_without_a_model_means_the_only_one_that_can_be_loaded(world: Any) -> None:
    async def work(served: Any, loader: FakeLoader, client: httpx.AsyncClient) -> None:
        body = {"messages": HELLO["messages"]}
        asked = asyncio.create_task(client.post(CHAT, json=body))
        loaded(served, await waiting(loader))
        assert (await asked).is_success

    cold(world, work)


@pytest.mark.parametrize("name", ["n", "", "m\n", "M", "../m", "m" * 100_000])
def test_other_names_load_nothing(world: Any, name: str) -> None:
    async def work(served: Any, loader: FakeLoader, client: httpx.AsyncClient) -> None:
        answer = await client.post(CHAT, json=HELLO | {"model": name})
        assert answer.status_code in (400, 404)
        assert len(answer.text) < 1000
        assert not loader.joins

    cold(world, work)


def test_an_unknown_name_is_told_what_could_be_loaded(world: Any) -> None:
    async def work(served: Any, loader: FakeLoader, client: httpx.AsyncClient) -> None:
        answer = await client.post(CHAT, json=HELLO | {"model": "other"})
        assert code_of(answer) == (404, "model_not_found")
        assert "Loaded on demand: m." in answer.json()["error"]["message"]

    cold(world, work)


def test_lists_tell_the_state(world: Any) -> None:
    async def work(served: Any, loader: FakeLoader, client: httpx.AsyncClient) -> None:
        async def get(path: str, **headers: str) -> Any:
            return (await client.get(path, headers=headers)).json()

        assert (await get("/v1/models"))["data"][0]["status"] == {"value": "unloaded"}
        assert (await get("/v1/models/m"))["id"] == "m"
        assert (await get("/v1/models?client_version=1"))["models"][0]["slug"] == "m"
        assert (await get("/v1/models", **{"anthropic-version": "1"}))["data"][0]["id"] == "m"
        assert (await get("/api/v0/models"))["data"][0]["state"] == "not-loaded"
        assert (await get("/api/v1/models"))["models"][0]["loaded_instances"] == []
        assert (await get("/api/tags"))["models"][0]["name"] == "m"
        assert (await get("/api/ps"))["models"] == []
        assert (await get("/props?model=m"))["model_alias"] == "m"
        assert (await get("/health"))["status"] == "no_engine_runs"
        loader.shown = Target("none", "m", 2, 4096, 1000.0, socket="", state=LOADING)
        assert (await get("/v1/models"))["data"][0]["status"] == {"value": "loading"}
        served.running = served.later
        assert [one["id"] for one in (await get("/v1/models"))["data"]] == ["m"]
        assert (await get("/v1/models"))["data"][0]["status"] == {"value": "loaded"}

    cold(world, work)


def test_ollama_loads_ends_and_says_how_long(world: Any) -> None:
    async def work(served: Any, loader: FakeLoader, client: httpx.AsyncClient) -> None:
        async def generate(**fields: Any) -> httpx.Response:
            return await client.post("/api/generate", json={"model": "m:latest", **fields})

        ended = await generate(keep_alive=0)
        assert (ended.json()["done_reason"], loader.unloaded, loader.joins) == ("unload", ["m"], [])
        asked = asyncio.create_task(generate(keep_alive="5m"))
        loaded(served, await waiting(loader))
        assert (await asked).json()["done_reason"] == "load"
        assert loader.joins == [("m", 300.0, None)]
        refused = await generate(keep_alive="long")
        assert (refused.status_code, refused.json()["code"]) == (400, "invalid_value")
        loader.by_hand = True
        assert (await generate(keep_alive=0)).is_success
        assert loader.unloaded == ["m"], "what somebody started stays"

    cold(world, work)


def test_lm_studio_loads_and_ends(world: Any) -> None:
    async def work(served: Any, loader: FakeLoader, client: httpx.AsyncClient) -> None:
        wish = {"model": "m", "context_length": 4096, "flash_attention": True, "echo_load_config": True}
        asked = asyncio.create_task(client.post("/api/v1/models/load", json=wish))
        loaded(served, await waiting(loader))
        answer = (await asked).json()
        assert (answer["instance_id"], answer["status"]) == ("m", "loaded")
        assert answer["load_config"]["context_length"] == 4096
        assert loader.joins == [("m", None, Overrides(context=4096, flash_attention="on"))]
        other = await client.post("/api/v1/models/load", json={"model": "m", "context_length": 512})
        assert code_of(other) == (409, "loaded_otherwise")
        ended = await client.post("/api/v1/models/unload", json={"instance_id": "m"})
        assert (ended.json(), loader.unloaded) == ({"instance_id": "m"}, ["m"])
        loader.by_hand = True
        assert (await client.post("/api/v1/models/unload", json={"instance_id": "m"})).status_code == 409
        served.running = [replace(served.later[0], name="mine")]
        mine = await client.post("/api/v1/models/unload", json={"instance_id": "mine"})
        assert code_of(mine) == (409, "started_by_hand")
        assert "sndr stop mine" in mine.text
        for path in ("/api/v1/models/load", "/api/v1/models/unload"):
            assert code_of(await client.post(path, json={"model": "other"}))[0] == 404
            assert code_of(await client.get(path)) == (405, "method_not_allowed")
            for name in (None, 1, ""):
                assert code_of(await client.post(path, json={"model": name}))[0] == 400
        for length in ("x", 1, True):
            wish = {"model": "m", "context_length": length}
            assert code_of(await client.post("/api/v1/models/load", json=wish))[0] == 400

    cold(world, work)


@pytest.mark.parametrize(
    ("facts", "asked", "same"),
    [
        ({"context_step": 256}, 4000, True),
        ({"context_step": 256}, 4096, True),
        ({"context_step": 256}, 4097, False),
        ({"context_step": 256}, 3840, False),
        ({"context_step": 256, "context_trained": 4096}, 100_000, True),
        ({"context_step": 256, "context_trained": 8192}, 100_000, False),
        ({"context_trained": 4096}, 100_000, False),
        ({}, 4000, False),
    ],
)
def test_a_context_is_compared_with_what_the_engine_made_of_it(
    world: Any, facts: dict[str, int], asked: int, same: bool
) -> None:
    async def work(served: Any, loader: FakeLoader, client: httpx.AsyncClient) -> None:
        served.running = [replace(served.later[0], context=4096, **facts)]
        answer = await client.post("/api/v1/models/load", json={"model": "m", "context_length": asked})
        assert answer.is_success if same else code_of(answer) == (409, "loaded_otherwise")

    cold(world, work)


def test_lm_studio_is_told_of_another_context_than_it_asked_for(world: Any) -> None:
    async def work(served: Any, loader: FakeLoader, client: httpx.AsyncClient) -> None:
        async def load(length: int) -> httpx.Response:
            wish = {"model": "m", "context_length": length}
            return await client.post("/api/v1/models/load", json=wish)

        # The engine rounds what the first one asks for.
        first = asyncio.create_task(load(4000))
        await waiting(loader)
        others = [asyncio.create_task(load(length)) for length in (4000, 512)]
        loaded(served, await waiting(loader, 3))
        assert (await first).json()["status"] == "loaded"
        same, other = await asyncio.gather(*others)
        assert same.json()["status"] == "loaded"
        assert code_of(other) == (409, "loaded_otherwise")

    cold(world, work)


def test_a_key_that_only_asks_loads_nothing_by_itself(world: Any) -> None:
    async def work(served: Any, loader: FakeLoader, client: httpx.AsyncClient) -> None:
        served.keys = frozenset({"secret"})
        headers = {"authorization": "Bearer secret"}
        for path in ("/api/v1/models/load", "/api/v1/models/unload"):
            refused = await client.post(path, json={"model": "m"}, headers=headers)
            assert code_of(refused) == (403, "permission_missing")
        assert not loader.joins

    cold(world, work)


@pytest.mark.parametrize(
    ("prefer", "limit"),
    [
        (None, 60.0),
        ("", 60.0),
        ("wait=5", 5.0),
        ('respond-async, Wait="7"', 7.0),
        ("wait=0", 0.0),
        ("wait=600", 60.0),
        ("wait=-1", 60.0),
        ("wait=" + "9" * 5000, 60.0),
        ("wait=\u0663", 60.0),
        ("wait", 60.0),
    ],
)
def test_a_wait_that_a_client_prefers(prefer: str | None, limit: float) -> None:
    assert wait_limit(prefer, 60.0) == limit


def test_no_room_has_its_own_code_and_says_when_to_come_again() -> None:
    evidence = {"code": "no_room", "retry_after": 10}
    fault = load_failed("m", Problem(reason=Reason.OUT_OF_MEMORY, message="No room.", evidence=evidence))
    assert (fault.code, fault.retry_after, fault.reason) == ("no_room", 10, Reason.OUT_OF_MEMORY)
    fault = load_failed("m", Problem(reason=Reason.OUT_OF_MEMORY, message="It was killed."))
    assert (fault.code, fault.retry_after) == ("out_of_memory", None)
