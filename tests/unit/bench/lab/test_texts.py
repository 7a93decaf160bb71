"""Prompts of an exact length by an engine's own count, whichever way it counts."""

import json

import httpx
import pytest

from engine_host.bench.lab.arrivals import Planned
from engine_host.bench.lab.asking import Asking
from engine_host.bench.lab.texts import Texts
from engine_host.bench.lab.workloads import WORKLOADS
from engine_host.protocol.bench.lab import WorkloadName
from tests.unit.asynchronous import run

_AROUND = 9


def tokens_of(text: str) -> int:
    """Count as an engine would that has a token for each word, and some for the template."""
    return len(text.split()) + _AROUND


def server(kind: str) -> httpx.AsyncClient:
    def answer(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        path = request.url.path
        if path == "/tokenize" and kind == "vllm" and "messages" in body:
            return httpx.Response(200, json={"count": tokens_of(body["messages"][0]["content"])})
        if path == "/apply-template" and kind == "llama.cpp":
            return httpx.Response(200, json={"prompt": body["messages"][0]["content"]})
        if path == "/tokenize" and kind == "llama.cpp" and "content" in body:
            return httpx.Response(200, json={"tokens": [1] * tokens_of(body["content"])})
        if path == "/v1/chat/completions":
            usage = {"prompt_tokens": tokens_of(body["messages"][0]["content"]), "completion_tokens": 1}
            events = [{"choices": [{"delta": {"content": "a"}}]}, {"choices": [], "usage": usage}]
            said = "".join(f"data: {json.dumps(one)}\n\n" for one in events) + "data: [DONE]\n\n"
            return httpx.Response(200, text=said)
        return httpx.Response(404 if kind != "odd" else 200, content=b"[1")

    return httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url="http://engine")


@pytest.mark.parametrize("kind", ["vllm", "llama.cpp", "none", "odd"])
def test_a_text_has_the_tokens_that_were_asked_for(kind: str) -> None:
    async def work() -> None:
        async with server(kind) as client:
            texts = Texts(client, "m")
            for wanted in (64, 65, 300, 2048):
                made = await texts.text("0" * 16, "What is it?", wanted, depth=0.5)
                assert made.content.startswith("[0000000000000000]")
                assert made.fact in made.content
                if kind in {"vllm", "llama.cpp"}:
                    assert made.tokens == tokens_of(made.content) == wanted
                else:
                    # Nobody counts before it is sent: then it is about so long.
                    assert made.tokens is None
                    assert tokens_of(made.content) == pytest.approx(wanted, rel=0.15, abs=30)

    run(work())


def test_prompts_of_a_shared_prefix_begin_alike_and_all_others_with_their_salt() -> None:
    async def work() -> None:
        async with server("vllm") as client:
            asking = Asking(client, "m", 7)
            parts = {part.name: part for part in WORKLOADS[WorkloadName.SERVING].parts}
            part = parts["shared prefix"]
            asked = [
                await asking.prepare(part, planned, number, 1, 4)
                for number, planned in enumerate(part.requests(2)[:2])
            ]
            first, second = (str(one.messages[0]["content"]) for one in asked)
            same = next(place for place, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
            assert tokens_of(first[:same]) >= 1024
            assert first != second
            other = await asking.prepare(parts["burst"], Planned(0.0, 128, 64), 3, 1, 2)
            assert str(other.messages[0]["content"]).startswith(f"[{other.salt}]")
            # A turn of an agent repeats the turns before it, word for word.
            turns = WORKLOADS[WorkloadName.AGENTIC].parts
            short, longer = [
                await asking.prepare(turn, Planned(0.0, None, 9), 0, 0, 0) for turn in (turns[1], turns[2])
            ]
            assert longer.messages[: len(short.messages)] == short.messages
            assert [one["role"] for one in short.messages] == ["system", "user", "assistant", "tool"]

    run(work())
