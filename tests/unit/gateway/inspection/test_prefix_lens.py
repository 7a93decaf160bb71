"""Conversations of requests that pass the gateway, in front of a FAKE engine."""

import asyncio
from typing import Any

import httpx

from engine_host.gateway.inspection import prefix_lens
from engine_host.protocol.endpoint.requests import PrefixReason

CHAT = "/v1/chat/completions"
LONG = {"role": "user", "content": "word " * 20_000}


def user(content: str) -> dict[str, Any]:
    return {"role": "user", "content": content}


async def ask(client: httpx.AsyncClient, *messages: Any, session: str = "", **more: Any) -> None:
    headers = {"x-session-id": session} if session else {}
    body = {"model": "m", "messages": list(messages), **more}
    assert (await client.post(CHAT, json=body, headers=headers)).status_code == 200


def test_turns_are_grouped_and_compared(world: Any) -> None:
    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url) as client:
            served.engine.go.set()
            lens = served.gateway.prefixes
            await ask(client, user("hi"), session="a")
            await ask(client, user("hi"), user("more"), session="a", stream=True)
            await ask(client, user("hi!"), user("more"), user("and"), session="b")
            await ask(client, {"role": "system", "content": "A title."}, user("Name it"), session="a")
            await ask(client, user("hi"), user("less"), user("and"), session="a")
            newest, other = lens.conversations(200)
            assert (newest.count, other.count) == (4, 1)
            reasons = [(turn.reason, turn.side) for turn in newest.turns]
            assert reasons == [
                (PrefixReason.FIRST_TURN, False),
                (PrefixReason.CACHE_COLD, False),
                (PrefixReason.FIRST_TURN, True),
                (PrefixReason.MESSAGE_CHANGED, False),
            ]
            assert newest.turns[-1].diverged is not None
            assert newest.turns[-1].diverged.number == 2
            assert (newest.prompt_tokens, newest.cached_tokens, newest.measured) == (28, 12, 4)
            requests = served.gateway.request_log.requests()
            assert {one.conversation for one in requests} == {newest.id, other.id}
            assert lens.turn(requests[0].id) == newest.turns[-1]

    asyncio.run(go())


def test_without_a_name_the_first_words_tell_and_long_ones_are_read_beside(world: Any) -> None:
    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url) as client:
            served.engine.go.set()
            await ask(client, LONG)
            await ask(client, LONG, user("more"))
            await ask(client, user("something else"))
            async with asyncio.timeout(5):
                while len(found := served.gateway.prefixes.conversations(200)) < 2 or found[-1].count < 2:  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
            assert found[-1].source == "first message"
            kept = repr(vars(served.gateway.prefixes)) + repr(found)
            assert "word" not in kept, "hashes and sizes, and nothing of the text"

    asyncio.run(go())


def test_what_is_kept_is_bounded(world: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(prefix_lens, "_MOST_CONVERSATIONS", 3)
    monkeypatch.setattr(prefix_lens, "_MOST_TURNS", 2)
    monkeypatch.setattr(prefix_lens, "_MOST_PARTS", 8)

    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url) as client:
            served.engine.go.set()
            for number in range(5):
                await ask(client, user(f"{number}"), session=f"s{number}")
            lens = served.gateway.prefixes
            assert len(lens.conversations(200)) == 3
            for count in range(4):
                await ask(client, *[user("x")] * (count + 1), session="s4")
            (newest, *_) = lens.conversations(200)
            assert (newest.count, len(newest.turns)) == (5, 2)
            await ask(client, *[user("x")] * 9, session="s9")
            assert len(lens.conversations(200)) == 1
            assert served.gateway.prefixes.turn(newest.turns[0].request) is None

    asyncio.run(go())


def test_a_request_that_the_engine_refused_is_no_turn(world: Any, scripts: Any) -> None:
    async def go() -> None:
        async with (
            world(scripts.answers(400, b'{"error": {"message": "no"}}')) as served,
            httpx.AsyncClient(base_url=served.url) as client,
        ):
            answer = await client.post(CHAT, json={"model": "m", "messages": [user("hi")]})
            assert answer.status_code == 400
            assert served.gateway.prefixes.conversations(200) == ()

    asyncio.run(go())


def test_a_list_at_its_bounds_is_small_and_one_conversation_whole(world: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(prefix_lens, "_MOST_CONVERSATIONS", 3)
    monkeypatch.setattr(prefix_lens, "_MOST_TURNS", 20)

    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url) as client:
            served.engine.go.set()
            lens = served.gateway.prefixes
            for number in range(3):
                for _ in range(6):
                    await ask(client, user("hi"), session=f"s{number}")
            bare, few = lens.conversations(0), lens.conversations(2)
            assert [len(one.turns) for one in bare] == [0, 0, 0]
            assert [len(one.turns) for one in few] == [2, 2, 2]
            assert bare[0] is lens.conversations(0)[0], "made once a turn, not once a look"
            assert [one.model_copy(update={"turns": ()}) for one in few] == list(bare), "the sums are of all"
            whole = lens.conversation(bare[0].id)
            assert whole is not None
            assert (len(whole.turns), whole.turns[-2:], whole.measured) == (6, few[0].turns, bare[0].measured)
            assert all(len(one.model_dump_json()) < 600 for one in bare)
            assert lens.conversation("\x1b[2J") is None

    asyncio.run(go())
