"""The door: only with the token, and a command once however often it arrives."""

import asyncio

import httpx
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from engine_host.api import guard
from engine_host.api.guard import OnceGuard, TokenGuard
from engine_host.protocol.errors import ErrorAnswer, Reason
from tests.unit.asynchronous import run, turns


class Commands:
    """An application that counts, and that can be held and made to fail."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.go = asyncio.Event()
        self.go.set()
        self.failures = 0

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        self.done.append(f"{scope['method']} {scope['path']}")
        number = len(self.done)
        await self.go.wait()
        if self.failures:
            self.failures -= 1
            raise RuntimeError("no answer")
        await send({"type": "http.response.start", "status": 202, "headers": [(b"x-number", b"%d" % number)]})
        await send({"type": "http.response.body", "body": b"part ", "more_body": True})
        await send({"type": "http.response.body", "body": b"%d" % number})


def client(app: ASGIApp, token: str | None = None) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app, raise_app_exceptions=False),
        base_url="http://host",
        headers={"authorization": f"Bearer {token}"} if token else {},
    )


@pytest.mark.parametrize("given", [None, "", "wrong", "the-token ", "the-toke", "Bearer the-token"])
def test_refuses_whoever_has_not_the_token(given: str | None) -> None:
    async def work() -> None:
        commands = Commands()
        headers = {} if given is None else {"authorization": f"Bearer {given}"}
        async with client(TokenGuard(commands, "the-token")) as asking:
            answer = await asking.get("/v1/engines", headers=headers)
        assert answer.status_code == 401
        assert ErrorAnswer.model_validate_json(answer.content).error.reason is Reason.UNAUTHORIZED
        assert "the-token" not in answer.text
        assert commands.done == []

    run(work())


def test_lets_the_token_pass() -> None:
    async def work() -> None:
        async with client(TokenGuard(Commands(), "the-token"), "the-token") as asking:
            assert (await asking.get("/v1/engines")).status_code == 202

    run(work())


def test_a_repeated_key_is_answered_and_not_done_again() -> None:
    async def work() -> None:
        commands = Commands()
        async with client(OnceGuard(commands)) as asking:
            answers = [await asking.post("/a", headers={"idempotency-key": "k"}) for _ in range(3)]
            assert {(one.status_code, one.text, one.headers["x-number"]) for one in answers} == {
                (202, "part 1", "1")
            }
            assert (await asking.post("/b", headers={"idempotency-key": "k"})).text == "part 2"
            assert (await asking.delete("/a", headers={"idempotency-key": "k"})).text == "part 3"
            assert (await asking.post("/a", headers={"idempotency-key": "l"})).text == "part 4"
            assert (await asking.post("/a")).text == "part 5"
            assert (await asking.post("/a")).text == "part 6"

    run(work())


def test_answers_are_kept_up_to_a_number_and_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    async def asked(numbers: list[int]) -> list[str]:
        commands = Commands()
        async with client(OnceGuard(commands)) as asking:
            for number in numbers:
                await asking.post("/a", headers={"idempotency-key": str(number)})
            kept = len(commands.done)
            again = [
                await asking.post("/a", headers={"idempotency-key": str(number)}) for number in (0, kept - 1)
            ]
        return [answer.text for answer in again]

    monkeypatch.setattr(guard, "_REMEMBERED", 5)
    assert run(asked(list(range(6)))) == ["part 7", "part 6"]
    monkeypatch.setattr(guard, "_REMEMBERED", 100)
    assert run(asked(list(range(6)))) == ["part 1", "part 6"]
    monkeypatch.setattr(guard, "_REMEMBERED_SIZE", 5 * len("part 1"))
    assert run(asked(list(range(6)))) == ["part 7", "part 6"]


def test_reads_and_the_endpoint_are_never_answered_from_memory() -> None:
    async def work() -> None:
        commands = Commands()
        async with client(OnceGuard(commands)) as asking:
            for _ in range(2):
                await asking.get("/a", headers={"idempotency-key": "k"})
                await asking.post("/openai/v1/chat", headers={"idempotency-key": "k"})
        assert len(commands.done) == 4

    run(work())


def test_a_key_repeated_while_the_first_still_works_waits_for_its_answer() -> None:
    async def work() -> None:
        commands = Commands()
        commands.go.clear()
        async with client(OnceGuard(commands)) as asking:
            asked = [
                asyncio.create_task(asking.post("/a", headers={"idempotency-key": "k"})) for _ in range(5)
            ]
            await turns(10)
            # One of those that wait goes away: the others still get the answer.
            asked[2].cancel()
            await turns(10)
            commands.go.set()
            answers = await asyncio.gather(*asked, return_exceptions=True)
        assert [one.text for one in answers if isinstance(one, httpx.Response)] == ["part 1"] * 4
        assert len(commands.done) == 1

    run(work())


def test_what_failed_without_an_answer_is_tried_again() -> None:
    async def work() -> None:
        commands = Commands()
        commands.failures = 1
        async with client(OnceGuard(commands)) as asking:
            headers = {"idempotency-key": "k"}
            assert (await asking.post("/a", headers=headers)).status_code == 500
            assert (await asking.post("/a", headers=headers)).text == "part 2"
            assert (await asking.post("/a", headers=headers)).text == "part 2"

    run(work())


def test_who_waits_for_one_that_fails_does_it_instead() -> None:
    async def work() -> None:
        commands = Commands()
        commands.failures = 1
        commands.go.clear()
        async with client(OnceGuard(commands)) as asking:
            asked = [
                asyncio.create_task(asking.post("/a", headers={"idempotency-key": "k"})) for _ in range(3)
            ]
            await turns(10)
            commands.go.set()
            answers = await asyncio.gather(*asked)
        assert sorted(answer.status_code for answer in answers) == [202, 202, 500]
        assert len(commands.done) == 2

    run(work())


def test_only_so_many_answers_are_remembered() -> None:
    async def work() -> None:
        commands = Commands()
        guard = OnceGuard(commands)
        async with client(guard) as asking:
            for number in range(300):
                await asking.post("/a", headers={"idempotency-key": str(number)})
            assert len(guard._answers) == 256
            await asking.post("/a", headers={"idempotency-key": "299"})
            assert len(commands.done) == 300

    run(work())
