"""How a start is judged: built-in checks against a small HTTP server in an engine's place, real commands."""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from engine_host.core.errors import HostError
from engine_host.daemon.http_server import HttpServer
from engine_host.operations.patches.bisect_check import Judgement, StartCheck, Subject
from engine_host.protocol.errors import Reason
from engine_host.protocol.patches import BisectCheck

SUBJECT = Subject("demo", "/nowhere.sock", "http://127.0.0.1:8020/v1", "key-1")
Serve = Callable[..., AbstractAsyncContextManager[Subject]]


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """Serves answers, one after the other; the last is given again and again."""

    @asynccontextmanager
    async def serving(*answers: object) -> AsyncIterator[Subject]:
        left = list(answers)

        async def chat(request: Request) -> Response:
            asked: dict[str, Any] = await request.json()
            assert asked["temperature"] == 0
            answer = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(answer, int):
                return JSONResponse({"error": {"message": "the engine is dead"}}, answer)
            message = answer if isinstance(answer, dict) else {"content": answer}
            return JSONResponse({"choices": [{"message": message}]})

        listener = socket.socket(socket.AF_UNIX)
        path = tmp_path / "engine.sock"
        listener.bind(str(path))
        app = Starlette(routes=[Route("/v1/chat/completions", chat, methods=["POST"])])
        server = HttpServer(app, listener, name="engine")
        await server.started()
        try:
            yield Subject("demo", str(path), SUBJECT.endpoint)
        finally:
            await server.close()
            listener.close()

    return serving


def test_an_answer_passes_and_an_empty_one_does_not(serve: Serve) -> None:
    async def go() -> None:
        check = StartCheck(BisectCheck(builtin="answers"))
        async with serve("Hello!", "  ", {"content": None, "reasoning": "Hm."}, 500) as subject:
            assert (await check.judge(subject)).why == "it answered: Hello!"
            assert not (await check.judge(subject)).passed
            assert (await check.judge(subject)).passed
            dead = await check.judge(subject)
        assert not dead.passed
        assert "HTTP 500" in dead.why
        assert "the engine is dead" in dead.why
        gone = await check.judge(subject)
        assert not gone.passed
        assert gone.why.startswith("no answer:")

    asyncio.run(go())


def test_the_first_answer_is_what_the_others_must_be(serve: Serve) -> None:
    async def go() -> None:
        check = StartCheck(BisectCheck(builtin="same_answer", prompt="Two and two?"))
        async with serve("Four.", "Four.", "Five.", "Four.") as subject:
            judged = [await check.judge(subject) for _ in range(4)]
        assert [one.passed for one in judged] == [True, True, False, True]
        assert "Five." in judged[2].why

    asyncio.run(go())


def test_that_it_started_is_enough_when_that_was_asked() -> None:
    async def go() -> None:
        assert (await StartCheck(BisectCheck(builtin="starts")).judge(SUBJECT)).passed

    asyncio.run(go())


def test_a_command_knows_the_engine_and_judges_by_its_exit_code(tmp_path: Path) -> None:
    async def go() -> None:
        code = (
            "import os, json; said = {k: v for k, v in os.environ.items() if k.startswith('SNDR_')};"
            "json.dump(said, open('seen', 'w')); print('all well')"
        )
        check = StartCheck(BisectCheck(command=(sys.executable, "-c", code), folder=str(tmp_path)))
        judged = await check.judge(SUBJECT)
        assert judged == Judgement(True, "ended with 0: all well")
        said = json.loads((tmp_path / "seen").read_text())
        expected = {
            "SNDR_ENDPOINT": SUBJECT.endpoint,
            "SNDR_SOCKET": SUBJECT.socket,
            "SNDR_MODEL": "demo",
            "SNDR_API_KEY": "key-1",
        }
        assert expected.items() <= said.items()
        failing = StartCheck(
            BisectCheck(command=(sys.executable, "-c", "print('too slow'); raise SystemExit(3)"))
        )
        assert await failing.judge(SUBJECT) == Judgement(False, "ended with 3: too slow")

    asyncio.run(go())


def test_a_command_may_say_that_it_cannot_judge() -> None:
    async def go() -> None:
        check = StartCheck(BisectCheck(command=(sys.executable, "-c", "raise SystemExit(125)")))
        with pytest.raises(HostError) as caught:
            await check.judge(SUBJECT)
        assert caught.value.reason is Reason.BAD_REQUEST
        assert caught.value.problem.evidence["code"] == 125

    asyncio.run(go())


@pytest.mark.parametrize("command", [("no-such-program",), ("./no-such-file", "--fast")])
def test_a_command_that_is_not_there_is_refused_before_anything_starts(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    with pytest.raises(HostError, match="cannot be run"):
        StartCheck(BisectCheck(command=command, folder=str(tmp_path)))


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="gone"):
        StartCheck(BisectCheck(command=("true",), folder=str(tmp_path / "gone")))


@pytest.mark.parametrize("values", [{}, {"builtin": "starts", "command": ("true",)}, {"command": ()}])
def test_exactly_one_check_is_given(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="either a built-in check or a command"):
        BisectCheck.model_validate(values)
