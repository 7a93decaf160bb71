"""Every error is OpenAI's object, or Anthropic's on its route, with a status, a code and who says so."""

import asyncio
import json
import time
from dataclasses import replace
from typing import Any

import httpx
import pytest

from engine_host.cli.root import root
from engine_host.gateway import Limits, Target
from engine_host.gateway.error_answers import engine_fault
from engine_host.protocol.engines import RequestState
from engine_host.protocol.errors import Reason
from tests.unit.asynchronous import until
from tests.unit.gateway.asking import CHAT, HELLO, ask, code_of


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v2", 404, "unknown_route"),
        ("POST", "/v1/batches", 404, "unknown_route"),
        ("POST", "/v2/chat/completions", 404, "unknown_route"),
        ("POST", "/v1/v1/v1/chat/completions", 404, "unknown_route"),
        ("GET", "/chat/completions", 405, "method_not_allowed"),
        ("GET", CHAT, 405, "method_not_allowed"),
        ("OPTIONS", CHAT, 405, "method_not_allowed"),
        ("DELETE", "/v1/models", 405, "method_not_allowed"),
        ("GET", "/v1/models/other", 404, "model_not_found"),
        ("GET", "/v1/responses/resp_1", 404, "not_found"),
        ("POST", "/v1/responses/resp_1/cancel", 404, "not_found"),
        ("GET", "/v1/models/", 404, "unknown_route"),
    ],
)
def test_routes_that_are_not_there(world: Any, method: str, path: str, status: int, code: str) -> None:
    assert code_of(ask(world, method, path)) == (status, code)


def test_another_version_is_pointed_out(world: Any) -> None:
    message = ask(world, "POST", "/v2/chat/completions").json()["error"]["message"]
    assert "Did you mean /v1/chat/completions?" in message


@pytest.mark.parametrize(
    "path",
    ["/chat/completions", "/v1/v1/chat/completions", "/v1//chat/completions", "//v1///chat/completions"],
)
def test_a_base_url_may_lack_its_version_have_it_twice_or_end_in_a_slash(world: Any, path: str) -> None:
    asked: list[Any] = []
    answer = ask(world, "POST", path, lambda served: asked.append(served.engine), json=HELLO)
    assert answer.status_code == 200, answer.text
    assert asked[0].received[0][0] == CHAT
    refused = ask(world, "POST", path.replace("chat/completions", "messages"), content=b"{")
    assert refused.json()["type"] == "error", "in Anthropic's form"


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        (b"{", "invalid_json", None),
        (b"[]", "invalid_json", None),
        (b"\xff\xfe\x00", "invalid_json", None),
        (b"[" * 100_000, "invalid_json", None),
        (b'{"messages": [], "seed": ' + b"7" * 5000 + b"}", "invalid_json", None),
        (b'{"messages": [{"role": "user", "content": "\\ud83d"}]}', "invalid_json", "messages"),
        (b'{"messages": [{"role": "user"}], "\\ud83d": 1}', "invalid_json", None),
        (b'{"messages": [{"role": "user", "content": "\xed\xa0\xbd"}]}', "invalid_json", None),
        (b"{}", "invalid_type", "messages"),
        (b'{"messages": []}', "invalid_value", "messages"),
        (b'{"messages": ["hi"]}', "invalid_type", "messages[0]"),
        (b'{"messages": [{"role": "user"}], "stream": "yes"}', "invalid_type", "stream"),
        (b'{"messages": [{"role": "user"}], "max_tokens": true}', "invalid_type", "max_tokens"),
        (b'{"messages": [{"role": "user"}], "max_tokens": 1.5}', "invalid_type", "max_tokens"),
        (b'{"messages": [{"role": "user"}], "temperature": "hot"}', "invalid_type", "temperature"),
        (b'{"messages": [{"role": "user"}], "model": 7}', "invalid_type", "model"),
    ],
)
def test_wrong_requests(world: Any, body: bytes, code: str, param: str | None) -> None:
    answer = ask(world, "POST", CHAT, content=body)
    assert code_of(answer) == (400, code)
    assert answer.json()["error"]["param"] == param


@pytest.mark.parametrize("encoding", ["gzip", "zstd", "BR", "identity", ""])
@pytest.mark.parametrize("path", [CHAT, "/v1/messages", "/api/show"])
def test_a_packed_body_is_refused_as_one(world: Any, path: str, encoding: str) -> None:
    answer = ask(world, "POST", path, content=b"{", headers={"content-encoding": encoding})
    told = answer.json()["error"]
    is_plain = encoding in ("identity", "")
    assert answer.status_code == (400 if is_plain else 415)
    assert ("packed" in (told if isinstance(told, str) else told["message"])) is not is_plain


def test_what_nobody_foresaw_in_a_request_is_told_in_our_form(
    world: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def breaks(*_: object) -> Target:
        raise ValueError("not foreseen")

    answer = ask(
        world,
        "POST",
        CHAT,
        lambda served: monkeypatch.setattr(served.gateway._resolution, "resolve", breaks),
        json=HELLO,
    )
    assert code_of(answer) == (500, "internal")
    assert "not foreseen" in caplog.text
    assert "'hi'" not in caplog.text


def test_an_unknown_model_lists_what_runs(world: Any) -> None:
    answer = ask(world, "POST", CHAT, json={**HELLO, "model": "gpt-4"})
    assert code_of(answer) == (404, "model_not_found")
    assert "Running now: m." in answer.json()["error"]["message"]


def test_a_missing_model_is_the_only_one(world: Any) -> None:
    assert ask(world, "POST", CHAT, json={"messages": HELLO["messages"]}).status_code == 200


def test_no_engine_says_how_to_start_one(world: Any) -> None:
    answer = ask(world, "POST", CHAT, lambda served: served.running.clear(), json=HELLO)
    assert code_of(answer) == (503, "no_engine_runs")
    assert answer.headers["x-should-retry"] == "false", "SDKs would try three times"
    advice = answer.json()["error"]["message"].rpartition("sndr ")[2].split()[0]
    # The command line's own list of commands: advice that nobody can follow is worse than none.
    assert advice == "run"
    assert advice in root.commands


def test_a_loading_engine_says_when_to_come_back(world: Any) -> None:
    def prepare(served: Any) -> None:
        served.running.clear()
        served.loading = ("m",)

    answer = ask(world, "POST", CHAT, prepare, json=HELLO)
    assert code_of(answer) == (503, "engine_not_ready")
    assert int(answer.headers["retry-after"]) > 0


def test_an_engine_that_takes_no_connection(world: Any, home: Any) -> None:
    def prepare(served: Any) -> None:
        served.running[:] = [Target("e2", "m", 1, 1, 0.0, socket=str(home / "nothing.sock"))]

    assert code_of(ask(world, "POST", CHAT, prepare, json=HELLO)) == (503, "engine_unreachable")


def test_embeddings_and_infill_need_an_engine_that_can(world: Any) -> None:
    def no_infill(served: Any) -> None:
        served.running[:] = [
            Target("e1", "m", 1, 1, 0.0, socket=served.engine.socket, fill_in_the_middle=False)
        ]

    embeddings = ask(world, "POST", "/v1/embeddings", json={"model": "m", "input": "x"})
    assert code_of(embeddings) == (400, "embeddings_off")
    middle = ask(world, "POST", "/v1/completions", no_infill, json={"prompt": "a", "suffix": "b"})
    assert code_of(middle) == (400, "fill_in_the_middle_unsupported")


def test_a_request_that_is_too_large(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> None:
        async with (
            world(limits=Limits(body=1000)) as served,
            httpx.AsyncClient(base_url=served.url) as client,
        ):
            answer = await client.post(CHAT, content=b" " * 2000)
            assert code_of(answer) == (413, "request_too_large")

    asyncio.run(go())


@pytest.mark.parametrize("part", [b"[],", b"{},", b"1,"])
def test_a_request_of_too_many_values_is_refused_before_they_are_read(world: Any, part: bytes) -> None:
    body = b'{"model": "m", "messages": [' + part * 1_100_000 + b"1]}"
    began = time.monotonic()
    answer = ask(world, "POST", CHAT, content=body)
    assert code_of(answer) == (413, "request_too_large")
    assert time.monotonic() - began < 5


def test_all_bodies_together_are_bounded_and_given_back(world: Any) -> None:
    async def go() -> None:
        async with (
            world(limits=Limits(bodies=10_000), slots=2) as served,
            httpx.AsyncClient(base_url=served.url) as client,
        ):
            large = {**HELLO, "user": "x" * 6_000}
            first = asyncio.create_task(client.post(CHAT, json=large))
            await until(lambda: served.engine.active)
            refused = await client.post(CHAT, json=large)
            assert code_of(refused) == (429, "too_many_bytes")
            assert refused.headers["retry-after"] == "5"
            assert (await client.post(CHAT, content=b"x" * 20_000)).status_code == 429
            assert code_of(await client.post(CHAT, content=b"{" * 3_000)) == (400, "invalid_json")
            served.engine.go.set()
            assert (await first).status_code == 200
            for _ in range(3):
                assert (await client.post(CHAT, json=large)).status_code == 200
            assert served.gateway._bodies.held == 0

    asyncio.run(go())


@pytest.mark.parametrize("stream", [True, False])
def test_the_engines_error_keeps_its_status(world: Any, scripts: Any, stream: bool) -> None:
    error = {
        "code": 400,
        "message": "too long",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 9,
        "n_ctx": 4,
    }

    async def go() -> None:
        script = scripts.answers(400, json.dumps({"error": error}).encode())
        async with world(script) as served, httpx.AsyncClient(base_url=served.url) as client:
            answer = await client.post(CHAT, json={**HELLO, "stream": stream})
            assert code_of(answer) == (400, "context_length_exceeded")
            assert answer.json()["error"] == {
                **error,
                "message": "too long. Send less, or start m with a longer --context.",
                "code": "context_length_exceeded",
                "param": None,
                "src": "engine",
            }
            (request,) = served.gateway.request_log.requests()
            assert request.state is RequestState.FAILED
            assert request.problem.reason is Reason.CONTEXT_TOO_LONG

    asyncio.run(go())


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (500, (400, "invalid_value")),
        (400, (400, "invalid_value")),
        (200, (500, "server_error")),  # the engine reads it, so the failure is its own
        (404, (500, "server_error")),  # an older server, which has no such route
    ],
)
def test_a_500_is_a_400_where_the_engine_cannot_read_the_request(
    world: Any, scripts: Any, stream: bool, read: int, expected: tuple[int, str]
) -> None:
    error = json.dumps({"error": {"code": 500, "message": "Unknown tool", "type": "server_error"}}).encode()

    async def script(engine: Any, sent: Any, writer: Any) -> None:
        status = 500 if engine.received[-1][0] == CHAT else read
        await scripts.answers(status, error)(engine, sent, writer)

    async def go() -> None:
        async with world(script) as served, httpx.AsyncClient(base_url=served.url) as client:
            answer = await client.post(CHAT, json={**HELLO, "stream": stream})
            assert code_of(answer) == expected
            assert "Unknown tool" in answer.json()["error"]["message"]
            assert [path for path, _ in served.engine.received] == [CHAT, "/apply-template"]

    asyncio.run(go())


@pytest.mark.parametrize(
    ("status", "body", "code", "message"),
    [
        (
            503,
            b'{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}',
            "engine_not_ready",
            "Loading",
        ),
        (500, b'{"error":{"code":500,"message":"x","type":"server_error"}}', "server_error", "x"),
        (500, b"plain words", "engine_500", "plain words"),
        (500, b"", "engine_500", "status 500"),
        (404, b'{"error":"File Not Found"}', "engine_404", "File Not Found"),
        (400, b'{"error":{"code":"custom","message":"y","type":"t"}}', "custom", "y"),
        (400, b"[]", "engine_400", "status 400"),
        (
            400,
            b'{"error":{"code":400,"message":"1 validation error","type":"Bad Request","param":"body.a.0"}}',
            "invalid_value",
            "a.0 is missing, or is nothing that the engine takes there. It says: 1 validation error",
        ),
        (
            400,
            b'{"error":{"code":400,"message":"1 error: '
            b"{'loc': 'body', 'msg': 'Value error, budget_tokens must be less than max_tokens', 1: 2}"
            b'",'
            b'"type":"Bad Request","param":"body"}}',
            "invalid_value",
            "budget_tokens must be less than max_tokens",
        ),
    ],
)
def test_engine_errors_in_openais_form(status: int, body: bytes, code: str, message: str) -> None:
    fault = engine_fault(status, body)
    assert (fault.status, fault.code, fault.source) == (status, code, "engine")
    assert message in fault.message
    assert "body is missing" not in fault.message


MESSAGES = "/v1/messages"
MESSAGE: dict[str, Any] = {**HELLO, "max_tokens": 9}


@pytest.mark.parametrize(
    ("method", "path", "headers", "body", "expected"),
    [
        ("POST", MESSAGES, {}, {**MESSAGE, "model": "claude-x"}, (404, "not_found_error")),
        ("POST", MESSAGES, {}, {"messages": []}, (400, "invalid_request_error")),
        ("POST", MESSAGES, {}, HELLO, (400, "invalid_request_error")),
        ("GET", MESSAGES, {}, None, (405, "invalid_request_error")),
        ("POST", f"{MESSAGES}/count_tokens", {"x-api-key": "no"}, HELLO, (401, "authentication_error")),
        ("POST", MESSAGES, {"host": "evil.example"}, HELLO, (403, "permission_error")),
    ],
)
def test_on_anthropics_route_errors_have_anthropics_form(
    world: Any, method: str, path: str, headers: dict[str, str], body: Any, expected: tuple[int, str]
) -> None:
    def lock(served: Any) -> None:
        served.keys = frozenset({"key-a"})

    answer = ask(world, method, path, lock, headers={"x-api-key": "key-a", **headers}, json=body)
    said = answer.json()
    assert said["type"] == "error"
    assert (answer.status_code, said["error"]["type"]) == expected
    assert said["error"]["message"]
    assert said["request_id"] == answer.headers["request-id"] == answer.headers["x-request-id"]


@pytest.mark.parametrize("stream", [True, False])
def test_an_engines_refusal_has_the_form_of_the_route_too(world: Any, scripts: Any, stream: bool) -> None:
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": "too long"}}

    async def go() -> None:
        async with (
            world(scripts.answers(400, json.dumps(error).encode())) as served,
            httpx.AsyncClient(base_url=served.url) as client,
        ):
            answer = await client.post(MESSAGES, json={**MESSAGE, "stream": stream})
            said = answer.json()
            assert (answer.status_code, said["type"], said["error"]["type"]) == (
                400,
                "error",
                "invalid_request_error",
            )
            assert (said["error"]["message"], said["error"]["src"]) == ("too long", "engine")

    asyncio.run(go())


def test_a_stream_on_anthropics_route_ends_with_its_error_event(world: Any, scripts: Any) -> None:
    async def breaks(engine: Any, sent: Any, writer: Any) -> None:
        writer.write(scripts.stream_head + scripts.http_chunk(b'event: ping\ndata: {"type": "ping"}\n\n'))

    async def go() -> None:
        async with world(breaks) as served, httpx.AsyncClient(base_url=served.url) as client:
            answer = await client.post(MESSAGES, json={**MESSAGE, "stream": True})
            event, data = answer.text.rstrip().rpartition("\n\n")[2].split("\n")
            assert event == "event: error"
            said = json.loads(data.removeprefix("data: "))
            assert (said["type"], said["error"]["type"]) == ("error", "api_error")
            assert said["request_id"] == answer.headers["x-request-id"]

    asyncio.run(go())


def test_models_tell_only_what_is_known(world: Any) -> None:
    def know(served: Any) -> None:
        served.running.append(
            Target(
                "e2",
                "big/one",
                4,
                8192,
                1234.5,
                url="http://127.0.0.1:1",
                parameters=7,
                fill_in_the_middle=True,
                tools=True,
            )
        )

    answer = ask(world, "GET", "/v1/models", know).json()
    assert answer["object"] == "list"
    plain, big = answer["data"]
    assert plain == {
        "id": "m",
        "object": "model",
        "created": 1000,
        "owned_by": "llamacpp",
        "max_model_len": 4096,
        "context_length": 4096,
        "capabilities": ["completion", "chat"],
        "architecture": {"input_modalities": ["text"], "output_modalities": ["text"]},
        "supported_parameters": plain["supported_parameters"],
        "status": {"value": "loaded"},
        "meta": {"n_ctx": 4096, "slots": 2},
    }
    assert big["capabilities"] == ["completion", "chat", "tool_use", "fill_in_the_middle"]
    assert big["meta"]["n_params"] == 7
    assert ask(world, "GET", "/v1/models/big/one", know).json() == big


def test_health(world: Any) -> None:
    assert ask(world, "GET", "/health").json() == {"status": "ok", "models": ["m"], "starting": []}
    assert (
        ask(world, "GET", "/health", lambda served: served.running.clear()).json()["status"]
        == "no_engine_runs"
    )


@pytest.mark.parametrize("path", [CHAT, "/v1/embeddings"])
def test_an_answer_too_large_to_hold_is_no_crash(world: Any, scripts: Any, path: str) -> None:
    async def go() -> None:
        script = scripts.answers(200, b" " * 5000)
        async with (
            world(script, limits=Limits(answer=4096)) as served,
            httpx.AsyncClient(base_url=served.url) as client,
        ):
            served.running[:] = [replace(served.running[0], embeddings=path != CHAT)]
            answer = await client.post(path, json={**HELLO, "input": ["a", "b"]})
            assert code_of(answer) == (400, "answer_too_large")
            assert "fewer inputs" in answer.json()["error"]["message"]
            (request,) = served.gateway.request_log.requests()
            assert (request.state, request.problem.reason) == (RequestState.FAILED, Reason.UNSUPPORTED)
            assert served.gateway.request_log.active("e1") == 0

    asyncio.run(go())


def test_an_answer_within_the_limit_passes(world: Any, scripts: Any) -> None:
    async def go() -> None:
        content = json.dumps({"text": "x" * 4000}).encode()
        async with (
            world(scripts.answers(200, content), limits=Limits(answer=len(content))) as served,
            httpx.AsyncClient(base_url=served.url) as client,
        ):
            answer = await client.post(CHAT, json=HELLO)
            assert (answer.status_code, answer.content) == (200, content)

    asyncio.run(go())


def test_an_engines_huge_error_reaches_the_client_whole_and_the_log_cut(world: Any, scripts: Any) -> None:
    figures = {f"figure-{number}" * 50: number for number in range(1000)}
    error = {"code": 400, "message": "m" * 1_000_000, "type": "t" * 1_000_000, **figures}
    script = scripts.answers(400, json.dumps({"error": error}).encode())

    async def go() -> None:
        async with world(script) as served, httpx.AsyncClient(base_url=served.url) as client:
            answer = await client.post(CHAT, json=HELLO)
            assert answer.json()["error"]["message"] == error["message"]
            (kept,) = served.gateway.request_log.requests()
            assert kept.problem is not None
            assert kept.problem.message == "m" * 2_000 + "… [998,000 more characters]"
            assert len(kept.model_dump_json()) < 10_000

    asyncio.run(go())


@pytest.mark.parametrize(
    ("status", "stream"), [(999, True), (304, False), (150, False), (700, True), (301, True)]
)
def test_a_status_that_no_server_sends_is_the_engines_fault(
    world: Any, scripts: Any, status: int, stream: bool
) -> None:
    async def go() -> None:
        async with (
            world(scripts.answers(status, b'{"error": {"message": "x"}}')) as served,
            httpx.AsyncClient(base_url=served.url) as client,
        ):
            answer = await client.post(CHAT, json={**HELLO, "stream": stream})
            assert answer.status_code == 502
            assert answer.json()["error"]["message"]
            assert served.activity[-1] == ("e1", 0)

    asyncio.run(go())


@pytest.mark.parametrize(
    "body",
    [
        b'{"error": {"param": ["a"], "message": "x"}}',
        b'{"error": {"param": {}, "type": [], "code": {}, "message": {"a": 1}}}',
        b'{"error": {"message": "\\ud800"}}',
        b'{"error": {"message": "x", "n_ctx": 1e999}}',
        b"[" * 100_000,
    ],
)
def test_an_engines_error_of_any_form_can_be_sent(body: bytes) -> None:
    fault = engine_fault(400, body)
    assert fault.message
    assert json.loads(fault.encoded())["error"]["message"] == fault.message
    assert fault.problem().model_dump_json()
