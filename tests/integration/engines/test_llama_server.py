"""llama.cpp's own server, built here and prebuilt: what this program asks of it, with real ones."""

import asyncio
import contextlib
import json
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine_host.bench.engine_speed import measure
from engine_host.core.errors import HostError
from engine_host.engines.llamacpp.command import LlamaCppStart, command
from engine_host.engines.llamacpp.log import LlamaCppStageReader
from engine_host.engines.llamacpp.servers import ServerCapabilities
from engine_host.engines.llamacpp.status import read_status, verify_ready
from engine_host.engines.llamacpp.temporary_server import TemporaryServer, temporary_server
from engine_host.engines.process.rates import prefill_rate
from engine_host.protocol.engines import Readings
from engine_host.protocol.errors import Reason

ALIAS = "tiny"
OWN = ("pools_itself", "pooling", "prompt_cache_mib", "weight_repacking")
Models = dict[str, Path]


def settings(model: Path, **changes: Any) -> LlamaCppStart:
    own = {name: changes.pop(name) for name in OWN if name in changes}
    return LlamaCppStart(str(model), ALIAS, {"context": 512, "streams": 1, "threads": 1, **changes}, **own)


def with_server(
    server: ServerCapabilities,
    chosen: LlamaCppStart,
    test: Callable[[TemporaryServer], Awaitable[None]],
) -> None:
    async def run() -> None:
        async with temporary_server(server, chosen) as running:
            await test(running)

    asyncio.run(run())


async def chat(client: httpx.AsyncClient, **more: Any) -> dict[str, Any]:
    body = {
        "model": ALIAS,
        "messages": [{"role": "user", "content": "Say something."}],
        "max_tokens": 8,
        **more,
    }
    answer = await client.post("/v1/chat/completions", json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    content: dict[str, Any] = answer.json()
    return content


def read_log(running: TemporaryServer) -> tuple[list[str], LlamaCppStageReader]:
    reader = LlamaCppStageReader()
    stages: list[str] = []
    for line in running.log.read_text(errors="replace").splitlines():
        seen = reader.feed(line)
        if seen is not None and seen.name not in stages:
            stages.append(seen.name)
    return stages, reader


def test_start_chat_and_readings(server: ServerCapabilities, models: Models) -> None:
    async def test(running: TemporaryServer) -> None:
        verified = await verify_ready(running.client, ALIAS, began=time.monotonic())
        assert verified.model_listed
        assert verified.token_generated
        assert verified.speculation_moved is None
        before = await read_status(running.client)
        answer = await chat(running.client)
        # The build that this program shows; a build from the package of sources has only its commit.
        build = f"b{server.build}-" if server.build else f"-{server.commit}"
        assert build in answer["system_fingerprint"]
        assert answer["model"] == ALIAS
        assert answer["usage"]["completion_tokens"] >= 1
        after = await read_status(running.client)
        assert (after.slots_total, after.slots_busy, after.requests_waiting) == (2, 0, 0)
        assert after.kv_capacity == 2 * 512
        assert after.kv_tokens is not None
        assert after.kv_tokens >= answer["usage"]["prompt_tokens"]
        assert before.generated_tokens_total is not None
        assert (
            after.generated_tokens_total
            == before.generated_tokens_total + answer["usage"]["completion_tokens"]
        )
        assert after.draft_tokens_total is None
        assert after.acceptance_length is None
        stages, reader = read_log(running)
        assert stages == ["Weights", "Context and KV", "Warm-up", "Serving"]
        # 512 tokens for each of two streams, one KV head of 64, K and V, 4 layers, 2 bytes.
        assert reader.buffers["CPU KV"] == 512 * 2 * 64 * 2 * 4 * 2
        assert reader.buffers["CPU compute"] > 0

    with_server(server, settings(models["plain"], streams=2), test)


def test_streaming_counts_tokens_while_they_come(server: ServerCapabilities, models: Models) -> None:
    """The engine's own counter moves only when a request ends; the readings move with each token."""

    async def test(running: TemporaryServer) -> None:
        body = {"model": ALIAS, "prompt": "a", "max_tokens": 30_000, "stream": True, "ignore_eos": True}
        seen: list[int] = []
        async with running.client.stream("POST", "/v1/completions", json=body) as answer:
            async for _line in answer.aiter_lines():
                now = await read_status(running.client)
                assert now.generated_tokens_total is not None
                seen.append(now.generated_tokens_total)
                if len(seen) == 5:
                    break
        assert seen == sorted(seen)
        assert seen[-1] > seen[0]

    with_server(server, settings(models["plain"], context=40_000), test)


def test_prefill_is_as_fast_as_the_server_says(server: ServerCapabilities, models: Models) -> None:
    async def test(running: TemporaryServer) -> None:
        body = {"model": ALIAS, "prompt": "a" * 3_500, "max_tokens": 4, "cache_prompt": False}
        now = await read_status(running.client)
        asked = asyncio.create_task(running.client.post("/v1/completions", json=body, timeout=60))
        told: list[Readings] = []
        ended = False
        while not ended:
            await asyncio.sleep(0.02)
            # One more reading after the end: the prompt may have been counted since the last.
            ended = asked.done()
            before, now = now, await read_status(running.client)
            told.append(now.model_copy(update={"prefill_rate": prefill_rate(before, now)}))
        timed = [one.prefill_rate for one in told if one.prefill_rate]
        assert timed == [pytest.approx(asked.result().json()["timings"]["prompt_per_second"], rel=0.1)]
        # What is between it and the idle server is not known, and not zero.
        assert all(one.prefill_rate is None for one in told if one.slots_reading)

    with_server(server, settings(models["plain"], context=4_096), test)


def test_suffix_is_ignored_and_infill_is_the_way(server: ServerCapabilities, models: Models) -> None:
    """llama-server takes `suffix` on /v1/completions without a word and does nothing with it."""

    async def test(running: TemporaryServer) -> None:
        body = {"model": ALIAS, "prompt": "def f():", "suffix": "return 1", "max_tokens": 4, "temperature": 0}
        answer = await running.client.post("/v1/completions", json=body)
        plain = await running.client.post(
            "/v1/completions", json={key: value for key, value in body.items() if key != "suffix"}
        )
        assert answer.status_code == 200
        assert answer.json()["usage"]["prompt_tokens"] == plain.json()["usage"]["prompt_tokens"]
        infill = await running.client.post(
            "/infill",
            json={"input_prefix": "def f():", "input_suffix": "return 1", "n_predict": 4, "temperature": 0},
        )
        assert infill.status_code == 200, infill.text
        # Prefix, suffix and the three FIM tokens.
        assert infill.json()["tokens_evaluated"] >= len("def f():") + len("return 1")

    with_server(server, settings(models["plain"]), test)


def test_tools_reach_the_template(server: ServerCapabilities, models: Models) -> None:
    """Random weights make no call, and `tool_choice: required` forces none: that needs a trained model."""
    tool = {
        "type": "function",
        "function": {
            "name": "add",
            "description": "Adds two digits.",
            "parameters": {
                "type": "object",
                "properties": {
                    "a": {"type": "integer", "enum": [1, 2]},
                    "b": {"type": "integer", "enum": [3]},
                },
                "required": ["a", "b"],
            },
        },
    }

    async def test(running: TemporaryServer) -> None:
        messages = [{"role": "user", "content": "Add."}]
        shown = await running.client.post("/apply-template", json={"messages": messages, "tools": [tool]})
        assert '"name": "add"' in shown.json()["prompt"].replace('":"', '": "')

    with_server(server, settings(models["plain"]), test)


def test_json_schema_holds(server: ServerCapabilities, models: Models) -> None:
    schema = {
        "type": "object",
        "properties": {"colour": {"enum": ["red", "green"]}, "size": {"type": "integer", "enum": [1, 2, 3]}},
        "required": ["colour", "size"],
        "additionalProperties": False,
    }

    async def test(running: TemporaryServer) -> None:
        answer = await chat(
            running.client,
            max_tokens=200,
            response_format={"type": "json_schema", "json_schema": {"name": "thing", "schema": schema}},
        )
        thing = json.loads(answer["choices"][0]["message"]["content"])
        assert thing["colour"] in {"red", "green"}
        assert thing["size"] in {1, 2, 3}

    with_server(server, settings(models["plain"]), test)


def test_embeddings(server: ServerCapabilities, models: Models) -> None:
    async def test(running: TemporaryServer) -> None:
        verified = await verify_ready(running.client, ALIAS, embeddings=True, began=time.monotonic())
        assert verified.token_generated
        body = {"model": ALIAS, "input": ["one", "two"]}
        answer = await running.client.post("/v1/embeddings", json=body)
        vectors = [item["embedding"] for item in answer.json()["data"]]
        assert [len(vector) for vector in vectors] == [128, 128]
        assert vectors[0] != vectors[1]

    with_server(
        server, settings(models["plain"], embeddings=True, extra_arguments=("--pooling", "last")), test
    )


@pytest.mark.parametrize(("kv_type", "bits"), [("q8_0", 8.5), ("q4_0", 4.5)])
def test_quantised_kv_is_smaller_and_rotated(
    server: ServerCapabilities, models: Models, kv_type: str, bits: float
) -> None:
    async def test(running: TemporaryServer) -> None:
        await chat(running.client)
        _, reader = read_log(running)
        # The log rounds to a hundredth of a MiB.
        assert reader.buffers["CPU KV"] == pytest.approx(512 * 64 * 2 * 4 * bits / 8, abs=6_000)
        assert reader.facts["K"] == reader.facts["V"] == kv_type
        assert reader.facts["K rotated"] == reader.facts["V rotated"] == "yes"

    with_server(server, settings(models["plain"], kv_type_k=kv_type, kv_type_v=kv_type), test)


def test_mtp_drafts_and_the_acceptance_is_read(server: ServerCapabilities, models: Models) -> None:
    async def test(running: TemporaryServer) -> None:
        verified = await verify_ready(running.client, ALIAS, speculation="draft-mtp", began=time.monotonic())
        assert verified.speculation_moved is True
        before = await read_status(running.client)
        answer = await chat(running.client, max_tokens=64, ignore_eos=True)
        now = await read_status(running.client)
        assert before.draft_tokens_total is not None
        assert before.draft_accepted_total is not None
        # The answer counts its own drafts; how many are accepted is drawn by lot, so no length is expected.
        timings = answer["timings"]
        assert timings["draft_n"] > 0
        assert now.draft_tokens_total == before.draft_tokens_total + timings["draft_n"]
        assert now.draft_accepted_total == before.draft_accepted_total + timings["draft_n_accepted"]
        assert now.acceptance_length is not None
        assert 1 < now.acceptance_length <= 4
        _, reader = read_log(running)
        assert reader.buffers["draft CPU KV"] > 0

    chosen = settings(
        models["mtp"],
        speculation="draft-mtp",
        draft_tokens=3,
        extra_arguments=("--spec-synth-len", "2.0"),
    )
    with_server(server, chosen, test)


def test_a_model_without_mtp_says_so(server: ServerCapabilities, models: Models) -> None:
    async def test(_running: TemporaryServer) -> None:
        pytest.fail("it started")

    with pytest.raises(HostError) as caught:
        with_server(server, settings(models["plain"], speculation="draft-mtp"), test)
    assert caught.value.reason is Reason.SETTING_INVALID
    assert "MTP" in str(caught.value)


@pytest.mark.parametrize("kind", ["ngram-simple", "ngram-mod"])
def test_ngram_speculation(server: ServerCapabilities, models: Models, kind: str) -> None:
    async def test(running: TemporaryServer) -> None:
        verified = await verify_ready(running.client, ALIAS, speculation=kind, began=time.monotonic())
        assert verified.speculation_moved in {True, None}
        now = await read_status(running.client)
        assert now.draft_tokens_total is not None

    with_server(server, settings(models["plain"], speculation=kind), test)


def test_a_client_that_leaves_ends_its_request(server: ServerCapabilities, models: Models) -> None:
    async def test(running: TemporaryServer) -> None:
        body = {"model": ALIAS, "prompt": "a", "max_tokens": 100_000, "stream": True, "ignore_eos": True}
        async with running.client.stream("POST", "/v1/completions", json=body) as answer:
            async for _line in answer.aiter_lines():
                break
        left = time.monotonic()
        while (await read_status(running.client)).slots_busy:
            assert time.monotonic() - left < 2, "it goes on decoding"
            await asyncio.sleep(0.005)
        assert time.monotonic() - left < 0.5
        first = (await read_status(running.client)).generated_tokens_total
        await asyncio.sleep(0.1)
        assert (await read_status(running.client)).generated_tokens_total == first

    with_server(server, settings(models["plain"], context=100_000), test)


def test_eight_streams_run_in_parallel(server: ServerCapabilities, models: Models) -> None:
    async def test(running: TemporaryServer) -> None:
        busy: list[int] = []

        async def watch() -> None:
            while True:
                busy.append((await read_status(running.client)).slots_busy or 0)
                await asyncio.sleep(0.02)

        watcher = asyncio.create_task(watch())
        answers = await asyncio.gather(
            *(chat(running.client, max_tokens=1_500, ignore_eos=True) for _ in range(8))
        )
        watcher.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watcher
        assert [answer["usage"]["completion_tokens"] for answer in answers] == [1_500] * 8
        assert max(busy) == 8

    with_server(server, settings(models["plain"], streams=8, context=2_048), test)


def test_speed_is_measured_with_its_spread(server: ServerCapabilities, models: Models) -> None:
    async def test(running: TemporaryServer) -> None:
        result = await measure(
            running.client, ALIAS, streams=(1, 2), repeats=2, decode_tokens=16, prefill_words=64
        )
        assert result.prefill_low <= result.prefill_rate <= result.prefill_high
        assert [row.streams for row in result.decode] == [1, 2]
        for row in result.decode:
            assert 0 < row.low <= row.decode_rate <= row.high
            assert row.ttft > 0

    with_server(server, settings(models["plain"], streams=2), test)


def test_sigterm_twice_ends_it_while_it_generates(server: ServerCapabilities, models: Models) -> None:
    """After one SIGTERM llama-server is silent but waits for clients with an open stream; not after two."""

    async def test(running: TemporaryServer) -> None:
        body = {"model": ALIAS, "prompt": "a", "max_tokens": 90_000, "stream": True, "ignore_eos": True}

        async def listen() -> None:
            with contextlib.suppress(httpx.TransportError):
                async with running.client.stream("POST", "/v1/completions", json=body, timeout=60) as answer:
                    async for _line in answer.aiter_lines():
                        began.set()

        began = asyncio.Event()
        listener = asyncio.create_task(listen())
        await asyncio.wait_for(began.wait(), 30)
        asked = time.monotonic()
        os.kill(running.pid, signal.SIGTERM)
        await asyncio.sleep(0.2)
        with contextlib.suppress(ProcessLookupError):
            os.kill(running.pid, signal.SIGTERM)
        await asyncio.wait_for(listener, 5)
        # Half a second here; the rest is room for a busy machine.
        assert time.monotonic() - asked < 3

    with_server(server, settings(models["plain"], context=100_000), test)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda content: content[: len(content) * 3 // 4], Reason.GGUF_TRUNCATED),
        (lambda content: content[:3000], Reason.GGUF_TRUNCATED),
        (lambda content: b"PK\x03\x04" + content[4:], Reason.NOT_GGUF),
        (lambda _content: b"", Reason.NOT_GGUF),
        (lambda content: content.replace(b"qwen3", b"qwen9"), Reason.MODEL_ARCHITECTURE_UNKNOWN),
        (None, Reason.MODEL_FILE_MISSING),
    ],
    ids=["cut in the data", "cut in the header", "a ZIP", "empty", "unknown architecture", "not there"],
)
def test_a_start_that_fails_says_why(
    server: ServerCapabilities,
    models: Models,
    tmp_path: Path,
    change: Callable[[bytes], bytes] | None,
    reason: Reason,
) -> None:
    path = tmp_path / "broken.gguf"
    if change is not None:
        path.write_bytes(change(models["plain"].read_bytes()))

    async def test(_running: TemporaryServer) -> None:
        pytest.fail("it started")

    with pytest.raises(HostError) as caught:
        with_server(server, settings(path), test)
    assert caught.value.reason is reason
    assert "broken.gguf" in str(caught.value) or reason is Reason.MODEL_ARCHITECTURE_UNKNOWN


def test_an_old_socket_file_is_explained(server: ServerCapabilities, models: Models, tmp_path: Path) -> None:
    socket = tmp_path / "e.sock"
    socket.touch()

    async def run() -> tuple[int, str]:
        argv, _ = command(settings(models["plain"]), server, socket)
        process = await asyncio.create_subprocess_exec(
            *argv, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        output, _ = await asyncio.wait_for(process.communicate(), 30)
        return process.returncode or 0, output.decode(errors="replace")

    code, output = asyncio.run(run())
    assert code == 1
    # The server sometimes ends before its log's own thread has written the line that says why.
    assert "couldn't bind HTTP server socket" in output or "Failed to init server" in output
