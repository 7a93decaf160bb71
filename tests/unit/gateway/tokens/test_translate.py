"""Tokens in both engines' words, in front of a FAKE engine of either kind; and hostile texts and answers."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

from tests.unit.gateway.asking import ask, code_of

LETTERS = {"h": 1, "i": 2, "<": 3, ">": 4}


async def llamacpp(engine: Any, body: dict[str, Any], writer: Any) -> None:
    """A FAKE llama.cpp whose tokens are letters; 9 is half of a letter."""
    path = engine.received[-1][0]
    if path == "/apply-template":
        answer: Any = {"prompt": "<" + body["messages"][0]["content"] + ">"}
    elif path == "/detokenize":
        known = {number: letter for letter, number in LETTERS.items()}
        if any(token not in known for token in body["tokens"]):
            tell(writer, 500, {"error": {"code": 500, "message": "range check", "type": "server_error"}})
            return
        answer = {"content": "".join(known[token] for token in body["tokens"])}
    else:
        numbers = [LETTERS.get(letter, 9) for letter in body["content"]]
        pieces: list[Any] = [[0xC3] if number == 9 else letter for letter, number in zip(
            body["content"], numbers, strict=True)]  # fmt: skip
        tokens = [{"id": n, "piece": p} for n, p in zip(numbers, pieces, strict=True)]
        answer = {"tokens": tokens if body["with_pieces"] else numbers}
    tell(writer, 200, answer)


async def vllm(engine: Any, body: dict[str, Any], writer: Any) -> None:
    """A FAKE vLLM with the same tokens."""
    path = engine.received[-1][0]
    if path == "/detokenize":
        known = {number: letter for letter, number in LETTERS.items()}
        tell(writer, 200, {"prompt": "".join(known[token] for token in body["tokens"])})
        return
    text = body["prompt"] if "prompt" in body else "<" + body["messages"][0]["content"] + ">"
    numbers = [LETTERS[letter] for letter in text]
    strings = list(text) if body["return_token_strs"] else None
    tell(writer, 200, {"count": 1, "max_model_len": 1, "tokens": numbers, "token_strs": strings})


def tell(writer: Any, status: int, value: Any) -> None:
    """Write one whole answer."""
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)


def of_vllm(served: Any) -> None:
    """Make the engine one of vLLM."""
    served.running[0] = replace(served.running[0], native_infill=False, usage_on_request=True)


def both(world: Any, path: str, body: dict[str, Any]) -> Any:
    """The answer, which is the same of both engines."""
    first = ask(lambda: world(llamacpp), "POST", path, json=body)
    second = ask(lambda: world(vllm), "POST", path, of_vllm, json=body)
    assert first.status_code == second.status_code == 200, (first.text, second.text)
    assert first.json() == second.json()
    return first.json()


def test_a_text_in_llamacpps_words(world: Any) -> None:
    assert both(world, "/tokenize", {"content": "hi"}) == {"tokens": [1, 2]}
    pieces = both(world, "/tokenize", {"content": "hi", "with_pieces": True})
    assert pieces == {"tokens": [{"id": 1, "piece": "h"}, {"id": 2, "piece": "i"}]}


def test_a_text_in_vllms_words(world: Any) -> None:
    asked = {"model": "m", "prompt": "hi", "return_token_strs": True}
    expected = {"count": 2, "max_model_len": 4096, "tokens": [1, 2], "token_strs": ["h", "i"]}
    assert both(world, "/tokenize", asked) == expected


def test_a_chat(world: Any) -> None:
    chat = {"messages": [{"role": "user", "content": "hi"}]}
    assert both(world, "/tokenize", chat)["tokens"] == [3, 1, 2, 4]
    assert both(world, "/apply-template", chat) == {"prompt": "<hi>"}


def test_tokens_become_text_under_both_names(world: Any) -> None:
    assert both(world, "/detokenize", {"tokens": [1, 2]}) == {"content": "hi", "prompt": "hi"}


def test_a_piece_that_is_half_a_letter(world: Any) -> None:
    asked = {"prompt": "é", "return_token_strs": True}
    answer = ask(lambda: world(llamacpp), "POST", "/tokenize", json=asked)
    assert answer.json()["token_strs"] == ["\ufffd"]


def test_special_tokens_are_added_as_each_form_has_it(world: Any) -> None:
    async def go() -> None:
        async with world(llamacpp) as served, httpx.AsyncClient(base_url=served.url) as client:
            for body in (
                {"content": "h"}, {"prompt": "h"}, {"prompt": "h", "add_special_tokens": False},
                {"content": "h", "add_special": True},
            ):  # fmt: skip
                await client.post("/tokenize", json=body)
            sent = [body["add_special"] for _, body in served.engine.received]
            assert sent == [False, True, False, True]

    asyncio.run(go())


def test_a_clients_own_template_is_not_passed_on(world: Any) -> None:
    async def go() -> None:
        async with world(vllm) as served, httpx.AsyncClient(base_url=served.url) as client:
            of_vllm(served)
            chat = {"messages": [{"role": "user", "content": "hi"}], "chat_template": "{{ 7 }}"}
            for path in ("/tokenize", "/apply-template"):
                assert (await client.post(path, json=chat)).status_code == 200
            assert all("chat_template" not in body for _, body in served.engine.received)

    asyncio.run(go())


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/tokenize", {}),
        ("/tokenize", {"content": 7}),
        ("/tokenize", {"content": [1, {}]}),
        ("/tokenize", {"content": [-1]}),
        ("/tokenize", {"prompt": ["a"]}),
        ("/tokenize", {"content": "a", "with_pieces": "yes"}),
        ("/tokenize", {"messages": "hi"}),
        ("/tokenize", {"messages": [1]}),
        ("/detokenize", {}),
        ("/detokenize", {"tokens": "1"}),
        ("/detokenize", {"tokens": [True]}),
        ("/detokenize", {"tokens": [1.5]}),
        ("/detokenize", {"tokens": [1 << 40]}),
        ("/apply-template", {"messages": [{"role": "user"}], "chat_template_kwargs": 1}),
        ("/apply-template", {}),
        ("/apply-template", {"messages": [{"role": "user", "content": [[1]]}]}),
        ("/tokenize", {"messages": [{"role": "user", "content": [[1]]}]}),
    ],
)
def test_what_is_no_request_is_refused_before_the_engine(world: Any, path: str, body: Any) -> None:
    seen: list[Any] = []
    answer = ask(lambda: world(llamacpp), "POST", path, lambda served: seen.append(served.engine), json=body)
    assert code_of(answer) == (400, "invalid_type")
    assert seen[0].received == []


def test_a_token_that_the_engine_does_not_have_is_the_requests_fault(world: Any) -> None:
    assert code_of(ask(lambda: world(llamacpp), "POST", "/detokenize", json={"tokens": [77]}))[0] == 400


@pytest.mark.parametrize(
    "answer",
    [b"", b"{", b"[]", b"{}", b'{"tokens": 1}', b'{"tokens": ["a"]}', b'{"tokens": [true]}',
     b'{"tokens": [{"id": 1}]}', b'{"tokens": [1e400]}', b"[" * 90_000, b"\xff"],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/tokenize", "/detokenize"])
def test_an_odd_answer_is_a_502(world: Any, scripts: Any, path: str, answer: bytes) -> None:
    body = {"prompt": "hi", "return_token_strs": True, "tokens": [1]}
    refused = ask(lambda: world(scripts.answers(200, answer)), "POST", path, json=body)
    assert code_of(refused) == (502, "engine_error")


def test_an_engine_without_a_tokenizer_says_so(world: Any) -> None:
    def bare(served: Any) -> None:
        served.running[0] = replace(served.running[0], tokens_only=True)

    assert code_of(ask(world, "POST", "/tokenize", bare, json={"prompt": "a"})) == (400, "tokenizer_missing")
