"""An ambiguous error of an engine is explained by asking it again."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

from engine_host.gateway.error_answers import engine_fault
from engine_host.protocol.engines import RequestState
from engine_host.protocol.errors import Reason

CHAT = "/v1/chat/completions"
MESSAGES = "/v1/messages"
QUESTION: dict[str, Any] = {
    "model": "m",
    "max_tokens": 9,
    "system": "Be brief.",
    "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    # A tool in every form.
    "tools": [{"type": "function", "name": "weather", "function": {"name": "weather"}, "input_schema": {}}],
}
# As vLLM 0.32 says it when its EngineCore is gone, in the middle of a stream.
DEAD = "EngineCore encountered an issue. See stack trace (above) for the root cause."
TOLD = {"error": {"message": DEAD, "type": "InternalServerError", "param": None, "code": 500}}
TOLD_AGENTS = {"type": "error", "error": {"type": "internal_error", "message": DEAD}}


def by_path(scripts: Any, answers: dict[str, tuple[int, Any]]) -> Any:
    """A FAKE vLLM that answers by path."""

    async def script(engine: Any, sent: Any, writer: Any) -> None:
        status, answer = answers[engine.received[-1][0]]
        await scripts.answers(status, json.dumps(answer).encode())(engine, sent, writer)

    return script


def of_vllm(served: Any) -> None:
    """Let the gateway take the engine for vLLM."""
    served.running[:] = [replace(served.running[0], usage_on_request=True, native_infill=False)]


@pytest.mark.parametrize(
    ("tokenize", "code"),
    [
        ((200, {"count": 9000, "max_model_len": 4096, "tokens": []}), "context_length_exceeded"),
        ((400, {"error": {"message": "x", "param": "input_text", "code": 400}}), "context_length_exceeded"),
        ((200, {"count": 9, "max_model_len": 4096, "tokens": []}), "invalid_value"),
        ((400, {"error": {"message": "x", "type": "BadRequestError", "code": 400}}), "invalid_value"),
        ((404, {"detail": "Not Found"}), "invalid_value"),
    ],
)
def test_too_long_a_prompt_has_its_code_in_anthropics_form_too(
    world: Any, scripts: Any, tokenize: tuple[int, Any], code: str
) -> None:
    refused = {"type": "error", "error": {"type": "BadRequestError", "message": "You passed 9000 tokens."}}
    script = by_path(scripts, {MESSAGES: (400, refused), "/tokenize": tokenize})

    async def go() -> None:
        async with world(script) as served, httpx.AsyncClient(base_url=served.url) as client:
            of_vllm(served)
            answer = await client.post(MESSAGES, json=QUESTION)
            error = answer.json()["error"]
            assert (answer.status_code, error["type"], error["code"]) == (400, "invalid_request_error", code)
            words = "You passed 9000 tokens."
            if code == "context_length_exceeded":
                words += " Send less, or start m with a longer --context."
            if tokenize[0] == 200 and code == "context_length_exceeded":
                # As Claude Code reads it.
                words = "prompt is too long: 9000 tokens > 4096 maximum"
            assert error["message"] == words
            ((_, sent),) = [one for one in served.engine.received if one[0] == "/tokenize"]
            assert all(word in sent["prompt"] for word in ("Be brief.", "hi", "weather"))

    asyncio.run(go())


@pytest.mark.parametrize(
    ("made_for", "advice"),
    [
        (None, "or start m with a longer --context."),
        (32768, "or start m with a longer --context (its model was made for 32768)."),
        (1, "Send less: m has the whole context that its model was made for."),
    ],
)
def test_what_to_do_about_a_long_prompt_is_said(
    world: Any, scripts: Any, made_for: int | None, advice: str
) -> None:
    error = {"message": "request (9 tokens) exceeds it", "type": "exceed_context_size_error", "code": 400}

    async def go() -> None:
        script = scripts.answers(400, json.dumps({"error": error}).encode())
        async with world(script) as served, httpx.AsyncClient(base_url=served.url) as client:
            served.running[:] = [replace(served.running[0], context_trained=made_for)]
            answer = await client.post("/v1/chat/completions", json=QUESTION)
            said = answer.json()["error"]["message"]
            assert said.startswith("request (9 tokens) exceeds it. Send less")
            assert said.endswith(advice)

    asyncio.run(go())


def test_a_text_too_long_to_embed_is_the_clients_to_mend(world: Any, scripts: Any) -> None:
    words = "input (3001 tokens) is too large to process"
    advice = ". increase the physical batch size (current batch size: 1024)"
    error = {"message": words + advice, "type": "server_error", "code": 500}
    tokenized = {"tokens": list(range(3001))}
    script = by_path(scripts, {"/v1/embeddings": (500, {"error": error}), "/tokenize": (200, tokenized)})

    async def go() -> None:
        async with world(script) as served, httpx.AsyncClient(base_url=served.url) as client:
            served.running[:] = [replace(served.running[0], embeddings=True, context=1024)]
            answer = await client.post("/v1/embeddings", json={"model": "m", "input": "word"})
            assert answer.status_code == 400
            assert answer.json()["error"] == {
                "message": f"{words}: a text may have 1024 tokens here. Send less.",
                "type": "invalid_request_error",
                "param": None,
                "code": "context_length_exceeded",
                "n_prompt_tokens": 3001,
                "n_ctx": 1024,
                "src": "engine",
            }

    asyncio.run(go())


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
SOURCE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}
ANSWER = {"type": "tool_result", "tool_use_id": "1", "content": [SOURCE]}


@pytest.mark.parametrize("status", [400, 500])
@pytest.mark.parametrize(
    ("path", "field", "content", "what"),
    [
        (CHAT, "messages", [{"type": "text", "text": "a"}, IMAGE], "pictures"),
        (CHAT, "messages", [{"type": "input_audio", "input_audio": {"data": "AA"}}], "audio"),
        (CHAT, "messages", [{"type": "file", "file": {"file_data": "AA"}}], "files"),
        (MESSAGES, "messages", [SOURCE], "pictures"),
        (MESSAGES, "messages", [ANSWER], "pictures"),
        ("/v1/responses", "input", [{"type": "input_image", "image_url": "data:"}], "pictures"),
    ],
)
def test_what_a_model_cannot_take_is_refused_in_the_same_words(
    world: Any, scripts: Any, path: str, field: str, content: Any, what: str, status: int
) -> None:
    told = {
        "error": {"message": "you may need to provide the mmproj", "type": "server_error", "code": status}
    }

    async def go() -> None:
        async with (
            world(scripts.answers(status, json.dumps(told).encode())) as served,
            httpx.AsyncClient(base_url=served.url) as client,
        ):
            body = {"model": "m", "max_tokens": 9, field: [{"role": "user", "content": content}]}
            answer = await client.post(path, json=body)
            error = answer.json()["error"]
            assert (answer.status_code, error["code"], error["src"]) == (400, "modality_unsupported", "sndr")
            assert error["message"].startswith(
                f"m takes no {what}; it was started for text alone. Leave them"
            )
            for more in ({"images": True}, {"audio": True}):
                served.running[:] = [replace(served.running[0], **{"images": False, "audio": False, **more})]
                taking = (await client.post(path, json=body)).json()["error"]
                assert taking["code"] != "modality_unsupported"

    asyncio.run(go())


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("/models/demo is not a multimodal model", "modality_unsupported"),
        ("At most 0 image(s) may be provided in one prompt.", "modality_unsupported"),
        ("Unsupported chat content part type: 'file'. Supported types: text.", "modality_unsupported"),
        ("image input is not supported - hint: you may need to provide the mmproj", "modality_unsupported"),
        ("unsupported content[].type", "modality_unsupported"),
        ("1 validation error: {'msg': 'Input should be text', 'input': 'document'}", "modality_unsupported"),
        ("'input_file' is not supported by llamacpp at this moment", "modality_unsupported"),
        ("temperature must be non-negative, got -1.0.", "invalid_value"),
        ("At most 1 image(s) may be provided in one prompt.", "invalid_value"),
    ],
)
def test_what_else_is_wrong_beside_a_picture_stays_in_the_engines_words(
    world: Any, scripts: Any, words: str, code: str
) -> None:
    told = {"error": {"message": words, "type": "BadRequestError", "code": 400}}

    async def go() -> None:
        async with (
            world(scripts.answers(400, json.dumps(told).encode())) as served,
            httpx.AsyncClient(base_url=served.url) as client,
        ):
            body = {"model": "m", "messages": [{"role": "user", "content": [IMAGE]}]}
            error = (await client.post(CHAT, json=body)).json()["error"]
            assert error["code"] == code
            assert (error["message"] == words) is (code == "invalid_value")

    asyncio.run(go())


def test_an_answer_that_is_to_be_spoken_is_refused(world: Any) -> None:
    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url) as client:
            body = {
                "model": "m",
                "messages": [{"role": "user", "content": "a"}],
                "modalities": ["text", "audio"],
            }
            error = (await client.post(CHAT, json=body)).json()["error"]
            assert (error["code"], error["param"]) == ("modality_unsupported", "modalities")
            assert not served.engine.received

    asyncio.run(go())


@pytest.mark.parametrize("length", [None, 0])
def test_a_message_needs_a_length(world: Any, length: int | None) -> None:
    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url) as client:
            of_vllm(served)
            answer = await client.post(MESSAGES, json={**QUESTION, "max_tokens": length})
            error = answer.json()["error"]
            assert (answer.status_code, error["type"]) == (400, "invalid_request_error")
            assert error["message"].startswith("max_tokens ")
            assert not served.engine.received

    asyncio.run(go())


@pytest.mark.parametrize(
    ("path", "told", "end"),
    [(CHAT, TOLD, b"data: [DONE]\n\n"), (MESSAGES, TOLD_AGENTS, b"")],
)
@pytest.mark.parametrize("health", [503, 200])
def test_a_crash_in_a_stream_is_told_in_our_words(
    world: Any, scripts: Any, path: str, told: dict[str, Any], end: bytes, health: int
) -> None:
    named = b"event: error\n" if path == MESSAGES else b""
    frame = named + b"data: " + json.dumps(told).encode() + b"\n\n"

    async def script(engine: Any, sent: Any, writer: Any) -> None:
        if engine.received[-1][0] == "/health":
            await scripts.answers(health, b"")(engine, sent, writer)
            return
        writer.write(scripts.stream_head + scripts.chunk('say "error": {'))
        await writer.drain()
        writer.write(scripts.http_chunk(frame + end) + b"0\r\n\r\n")

    async def go() -> None:
        async with world(script) as served, httpx.AsyncClient(base_url=served.url) as client:
            of_vllm(served)
            answer = await client.post(path, json={**QUESTION, "stream": True})
            ours = next(line for line in answer.text.splitlines() if '"error":{' in line or DEAD in line)
            error = json.loads(ours.removeprefix("data: "))["error"]
            assert answer.content.endswith(b"data: [DONE]\n\n") is bool(end)
            (request,) = served.gateway.request_log.requests()
            assert request.state is RequestState.FAILED
            assert request.problem.reason is Reason.ENGINE_CRASHED
            if health == 200:
                assert error["message"] == DEAD
                return
            assert error["code"] == "engine_crashed"
            assert "sndr logs m" in error["message"]
            assert request.problem.evidence["engine_message"] == DEAD
            if path == CHAT:
                assert error["engine_message"] == DEAD
            else:
                assert "event: error\n" in answer.text
                assert error["src"] == "sndr"
                assert json.loads(ours.removeprefix("data: "))["request_id"] == request.id

    asyncio.run(go())


@pytest.mark.parametrize(("health", "expected"), [(503, (502, "engine_crashed")), (200, (500, "x"))])
def test_a_crash_before_an_answer_is_told_in_our_words(
    world: Any, scripts: Any, health: int, expected: tuple[int, str]
) -> None:
    script = by_path(
        scripts, {CHAT: (500, {"error": {"message": DEAD, "code": "x"}}), "/health": (health, {})}
    )

    async def go() -> None:
        async with world(script) as served, httpx.AsyncClient(base_url=served.url) as client:
            of_vllm(served)
            answer = await client.post(CHAT, json=QUESTION)
            assert (answer.status_code, answer.json()["error"]["code"]) == expected

    asyncio.run(go())


@pytest.mark.parametrize(
    ("field", "rules", "told"),
    [
        (
            "stop_token_ids",
            "{'msg': 'Input should be a list', 'input': '-1'}",
            "stop_token_ids: Input should be a list. ",
        ),
        (
            "tools.0.A.type",
            "{'msg': 'It is no A', 'input': 1} {'msg': 'It is no B', 'input': 1}",
            "tools.0.type is missing, or is nothing that the engine takes there. Among what it says: ",
        ),
    ],
)
def test_what_vllm_refuses_of_a_field_is_one_sentence(field: str, rules: str, told: str) -> None:
    error = {"message": f"errors: {rules}", "type": "Bad Request", "param": f"body.{field}"}
    assert engine_fault(400, json.dumps({"error": error}).encode()).message.startswith(told)
