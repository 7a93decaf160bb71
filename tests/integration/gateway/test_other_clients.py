"""Clients of Ollama, of llama.cpp's own routes and of its tokens, in front of a real llama.cpp server."""

import asyncio
import json
from typing import Any

import httpx

CHAT = {"model": "random", "messages": [{"role": "user", "content": "hello there"}]}
ENDLESS = {"num_predict": 6, "temperature": 0}


def client(served: Any) -> httpx.AsyncClient:
    """A client of the endpoint's root."""
    return httpx.AsyncClient(base_url=served.url.removesuffix("/v1"), timeout=60)


def test_ollamas_chat_streams_lines_with_figures(real: Any) -> None:
    async def go() -> None:
        async with real() as served, client(served) as asking:
            body = {**CHAT, "options": ENDLESS}
            async with asking.stream("POST", "/api/chat", json=body) as answer:
                assert answer.status_code == 200
                told = [json.loads(line) async for line in answer.aiter_lines()]
            assert [one["done"] for one in told] == [False] * (len(told) - 1) + [True]
            last = told[-1]
            assert 1 <= last["eval_count"] <= 6
            assert last["prompt_eval_count"] > 0
            assert last["eval_duration"] > 0
            whole = (await asking.post("/api/chat", json={**body, "stream": False})).json()
            assert whole["message"]["content"] == "".join(one["message"]["content"] for one in told)

    asyncio.run(go())


def test_ollamas_texts_raw_and_with_a_gap(real: Any) -> None:
    async def go() -> None:
        async with real() as served, client(served) as asking:
            for more in ({}, {"raw": True}, {"suffix": " there"}, {"system": "be brief"}):
                body = {"model": "random", "prompt": "hello", "options": ENDLESS, **more}
                answer = await asking.post("/api/generate", json={**body, "stream": False})
                assert answer.status_code == 200, answer.text
                assert answer.json()["eval_count"] >= 1
                streamed = await asking.post("/api/generate", json=body)
                told = [json.loads(line) for line in streamed.text.splitlines()]
                assert told[-1]["done"] is True
                assert "".join(one["response"] for one in told) == answer.json()["response"], more

    asyncio.run(go())


def test_a_schema_holds_for_ollamas_clients(real: Any) -> None:
    async def go() -> None:
        async with real() as served, client(served) as asking:
            schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}
            options = {"num_predict": 60, "seed": 1}
            body = {**CHAT, "format": schema, "stream": False, "options": options}
            answer = await asking.post("/api/chat", json=body)
            if answer.json()["done_reason"] == "stop":
                assert isinstance(json.loads(answer.json()["message"]["content"])["a"], bool)

    asyncio.run(go())


def test_a_client_of_ollama_that_leaves_ends_the_engines_work(real: Any) -> None:
    async def go() -> None:
        async with real() as served, client(served) as asking:
            body = {**CHAT, "options": {"num_predict": 2000, "repeat_penalty": 1.0}}
            async with asking.stream("POST", "/api/chat", json=body) as answer:
                await anext(answer.aiter_lines())
            for _ in range(200):
                slots = json.loads(await served.get("/slots"))
                if not any(slot["is_processing"] for slot in slots):
                    break
                await asyncio.sleep(0.02)
            assert not any(slot["is_processing"] for slot in slots)

    asyncio.run(go())


def test_tokens_of_a_text_and_of_a_chat(real: Any) -> None:
    async def go() -> None:
        async with real() as served, client(served) as asking:
            plain = (await asking.post("/tokenize", json={"content": "hello"})).json()
            counted = (
                await asking.post("/tokenize", json={"prompt": "hello", "return_token_strs": True})
            ).json()
            assert counted["count"] == len(counted["tokens"]) == len(counted["token_strs"])
            text = (await asking.post("/detokenize", json={"tokens": plain["tokens"]})).json()
            assert text["content"].strip() == text["prompt"].strip() == "hello"
            prompt = (await asking.post("/apply-template", json=CHAT)).json()["prompt"]
            assert "hello there" in prompt
            chat = (await asking.post("/tokenize", json=CHAT)).json()
            assert chat["count"] > counted["count"]
            for wrong in ({"tokens": [2_000_000_000]}, {"tokens": [123_456_789]}):
                assert (await asking.post("/detokenize", json=wrong)).status_code == 400

    asyncio.run(go())


def test_llamacpps_own_routes(real: Any) -> None:
    async def go() -> None:
        async with real() as served, client(served) as asking:
            body = {"prompt": "hello", "n_predict": 4, "temperature": 0, "ignore_eos": True}
            whole = (await asking.post("/completion", json=body)).json()
            assert whole["tokens_predicted"] == 4
            streamed = await asking.post("/completion", json={**body, "stream": True})
            frames = [json.loads(one.removeprefix("data: ")) for one in streamed.text.split("\n\n") if one]
            assert "".join(one["content"] for one in frames) == whole["content"]
            (first, _) = served.gateway.request_log.requests()
            assert (first.route, first.generated_tokens) == ("/completion", 4)
            assert first.ttft is not None
            gap = {"input_prefix": "hello", "input_suffix": "there", "n_predict": 3}
            assert (await asking.post("/infill", json=gap)).json()["stop"] is True
            for wrong in (
                {"prompt": [10**9]}, {"prompt": "a", "grammar": "root ::= ("}, {"prompt": {"x": 1}},
                {"prompt": "a", "logit_bias": "x"}, {"prompt": "a", "samplers": 5},
                {"prompt": "a", "n_probs": "x"},
                {"prompt": "a", "stop": 5}, {"prompt": "a", "lora": [1]}, {"prompt": "a", "json_schema": 5},
            ):  # fmt: skip
                answer = await asking.post("/completion", json={"n_predict": 1, **wrong})
                assert answer.status_code < 500, (wrong, answer.text)

    asyncio.run(go())


def test_reranking_puts_the_best_first_and_all_else_is_refused(real: Any) -> None:
    async def go() -> None:
        async with real(reranking=True) as served, client(served) as asking:
            texts = ["one", {"text": "hello there"}, "three"]
            body = {"model": "random", "query": "hello", "documents": texts, "return_documents": True}
            for path in ("/v1/rerank", "/rerank"):
                answer = (await asking.post(path, json=body)).json()
                scores = [one["relevance_score"] for one in answer["results"]]
                assert scores == sorted(scores, reverse=True)
                assert {one["document"]["text"] for one in answer["results"]} == {
                    "one",
                    "hello there",
                    "three",
                }
            best = (await asking.post("/v1/rerank", json={**body, "top_n": 1})).json()["results"]
            assert [one["index"] for one in best] == [answer["results"][0]["index"]]
            long = await asking.post("/v1/rerank", json={**body, "documents": ["b " * 5000]})
            assert (long.status_code, long.json()["error"]["code"]) == (400, "context_length_exceeded")
            refused = await asking.post("/v1/chat/completions", json=CHAT)
            assert refused.json()["error"]["code"] == "reranking_only"
            (model,) = (await asking.get("/v1/models")).json()["data"]
            assert model["capabilities"] == ["rerank"]

    asyncio.run(go())


def test_a_model_that_writes_does_not_rank(real: Any) -> None:
    async def go() -> None:
        async with real() as served, client(served) as asking:
            answer = await asking.post("/v1/rerank", json={"query": "a", "documents": ["b"]})
            assert answer.json()["error"]["code"] == "reranking_off"
            assert "--set reranking=true" in answer.json()["error"]["message"]

    asyncio.run(go())
