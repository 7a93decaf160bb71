"""Bodies that are nearly right, on every path that takes one: an answer or an error in form, never a 500."""

import asyncio
import random
from dataclasses import replace
from typing import Any

import httpx
import pytest

from engine_host.gateway.error_answers import Form, form_of
from engine_host.gateway.routes import table

SEED = 20261122
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 1.5, 1e308, 10**400, -(10**30), "", "a", "ü\u2028\x00", "x" * 5000, [],
    [None], [1], [[1]], ["a"], [{}], {}, {"a": 1}, {"role": "user"}, [{"role": "user", "content": "a"}],
    {"type": "json_schema"}, {"text": 5}, [{"text": "a"}], "low", "json", "0s",
)  # fmt: skip
MESSAGE = {"role": "user", "content": "a", "images": [], "tool_calls": [], "tool_name": "x", "thinking": ""}
CHAT = {"messages": [MESSAGE], "tools": [], "stop": "x", "max_tokens": 3, "temperature": 0, "stream": False}
OLLAMA = {
    "options": {"seed": 1, "stop": ["x"], "num_predict": 2},
    "format": "json",
    "think": True,
    "images": [],
}
GOOD: dict[str, Any] = {
    "/api/chat": {**CHAT, **OLLAMA},
    "/api/generate": {"prompt": "a", "system": "b", "suffix": "", "raw": False, "stream": False, **OLLAMA},
    "/api/embed": {"input": ["a"], "truncate": True, "dimensions": 3},
    "/api/embeddings": {"prompt": "a"},
    "/api/show": {"model": "m", "name": "m"},
    "/tokenize": {"content": "a", "with_pieces": True, "add_special": False, "messages": None},
    "/detokenize": {"tokens": [1]},
    "/apply-template": {"messages": [MESSAGE], "tools": [], "chat_template_kwargs": {}},
    "/completion": {"prompt": "a", "n_predict": 2, "json_schema": {}, "grammar": "", "seed": 1, "n_probs": 0},
    "/infill": {"input_prefix": "a", "input_suffix": "b", "input_extra": [], "prompt": "", "n_predict": 2},
    "/v1/rerank": {"query": "a", "documents": ["b"], "top_n": 1, "return_documents": True},
}


def spoiled(chance: random.Random, body: Any) -> Any:
    """The same with one value somewhere in it that is another one."""
    if isinstance(body, dict) and body and chance.random() < 0.8:
        name = chance.choice(sorted(body))
        return {**body, name: spoiled(chance, body[name]) if chance.random() < 0.5 else chance.choice(VALUES)}
    if isinstance(body, list) and body and chance.random() < 0.8:
        return [spoiled(chance, body[0]), *body[1:]]
    return chance.choice(VALUES)


def other_kinds(served: Any, kind: str) -> None:
    """Make the engine one of another kind."""
    kinds: dict[str, dict[str, Any]] = {
        "llama.cpp": {"fill_in_the_middle": True},
        "vllm": {"native_infill": False, "usage_on_request": True, "fim_tokens": ("<P>", "<S>", "<M>")},
        "embeds": {"embeddings": True},
        "ranks": {"reranking": True},
        "bare": {"tokens_only": True, "native_infill": False},
    }
    served.running[0] = replace(served.running[0], **kinds[kind])


@pytest.mark.parametrize("kind", ["llama.cpp", "vllm", "embeds", "ranks", "bare"])
def test_no_body_gets_more_than_an_error_object(world: Any, kind: str) -> None:
    async def go() -> None:
        chance = random.Random(SEED)
        async with world() as served, httpx.AsyncClient(base_url=served.url, timeout=20) as client:
            served.engine.go.set()
            other_kinds(served, kind)
            for path, good in GOOD.items():
                for _ in range(10):
                    body = spoiled(chance, good)
                    answer = await client.post(path, json=body)
                    where = (path, body, answer.text[:300])
                    # The FAKE engine answers every path alike, which on some of them is no answer.
                    assert answer.status_code < 500 or answer.status_code == 502, where
                    if answer.status_code != 200:
                        error = answer.json()["error"]
                        told = error if form_of(path) is Form.OLLAMA else error["message"]
                        assert isinstance(told, str), where
                        assert told, where
            assert served.gateway.request_log.live() == ()

    asyncio.run(go())


def test_every_path_that_was_made_for_other_clients_is_tried() -> None:
    theirs = {path for path in (*table.POSTS, *table.ASKS, *table.POSTED_GETS) if not path.startswith("/v1/")}
    assert theirs - {"/rerank", "/reranking"} <= set(GOOD)
