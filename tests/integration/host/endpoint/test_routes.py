"""Routes of a real host: a real llama.cpp behind another id, and a second real server as a provider."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest

from engine_host.core.errors import HostError
from engine_host.protocol.endpoint.requests import RequestQuery
from engine_host.protocol.endpoint.routes import CutOver, Provider, RouteTargets, SetRoute, TargetState
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.engines import EngineState, RequestState, StopEngine
from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import Job
from engine_host.protocol.launch.plans import LaunchRequest
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import table as ops
from tests.integration.host.conftest import DEMO, RunningHost, free_port, wait_for

LARGE = Overrides(context=4096, streams=4)
HELLO: list[Any] = [{"role": "user", "content": "Hello"}]
SERVER = (sys.executable, "-m", "engine_host.engines.llamacpp.prebuilt_server")
STORY: list[Any] = [{"role": "user", "content": "Tell a story"}]
LONG = 800
KEY = "sk-of-the-provider"


@pytest.fixture
def provider(home: Path) -> Iterator[Provider]:
    """A second llama.cpp server, on a port and with a key, as somebody else would run it."""
    port = free_port()
    keys, key = home / "accepted", home / "key"
    for file in (keys, key):
        file.write_text(KEY + "\n")
        file.chmod(0o600)
    words = f"--host 127.0.0.1 --port {port} --alias large -c 8192 -np 4 -t 1 --jinja --metrics --slots"
    process = subprocess.Popen(
        [*SERVER, "--model", str(DEMO), *words.split(), "--api-key-file", str(keys), "--no-ui"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(lambda: _healthy(port), "the provider")
        yield Provider(
            url=f"http://127.0.0.1:{port}/v1", model="large", key_file=str(key), context=2048, slots=4
        )
    finally:
        process.terminate()
        process.wait(20)


def _healthy(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False).is_success
    except httpx.HTTPError:
        return False


def start(host: RunningHost, name: str) -> None:
    host.launch(LaunchRequest(model=str(DEMO), name=name, overrides=LARGE))


def url(host: RunningHost, path: str = "") -> str:
    return f"http://127.0.0.1:{host.port}{path}"


def ended(host: RunningHost, job: Job) -> Job:
    def look() -> Job | None:
        now = host.client.call(ops.JOB, id=job.id)
        return now if now.ended else None

    return wait_for(look, job.title, 120)


def ask(host: RunningHost, model: str, **more: Any) -> httpx.Response:
    body = {"model": model, "messages": HELLO, "max_tokens": 4, **more}
    return httpx.post(url(host, "/v1/chat/completions"), json=body, trust_env=False, timeout=60)


def _by_openai(host: RunningHost) -> str:
    with openai.OpenAI(base_url=url(host, "/v1"), api_key="none", max_retries=0) as client:
        raw = client.chat.completions.with_raw_response.create(
            model="coder",
            messages=HELLO,
            max_tokens=LONG,
            stream=True,
            stream_options={"include_usage": True},
            extra_body={"ignore_eos": True},
        )
        *_, last = raw.parse()
        assert last.usage is not None
        assert last.usage.completion_tokens == LONG
        return raw.headers["x-sndr-engine"]


def _by_anthropic(host: RunningHost) -> str:
    with (
        anthropic.Anthropic(base_url=url(host), api_key="none", max_retries=0) as client,
        client.messages.stream(model="coder", messages=STORY, max_tokens=LONG) as stream,
    ):
        assert stream.get_final_message().stop_reason
        return stream.response.headers["x-sndr-engine"]


def _by_curl(host: RunningHost) -> str:
    body = {"model": "coder", "messages": HELLO, "max_tokens": LONG, "stream": True, "ignore_eos": True}
    words = ["curl", "-sSN", "-i", url(host, "/v1/chat/completions"), "--json", json.dumps(body)]
    said = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True).stdout
    head, _, frames = said.partition("\n\n")
    *_, last, done = (one for one in frames.split("\n\n") if one)
    assert done == "data: [DONE]"
    (engine,) = re.findall(r"x-sndr-engine: (\w+)", head)
    assert json.loads(last.removeprefix("data: "))["timings"]["predicted_n"] == LONG
    return str(engine)


def _decoding(host: RunningHost) -> int:
    log = host.client.call(endpoint_ops.REQUESTS, RequestQuery()).requests
    return sum(one.state is RequestState.DECODE for one in log)


def test_an_id_stays_while_the_engine_behind_it_changes(host: RunningHost) -> None:
    start(host, "one")
    start(host, "two")
    host.client.call(endpoint_ops.SET_ROUTE, SetRoute(engines=("one",)), id="coder")
    with openai.OpenAI(base_url=url(host, "/v1"), api_key="none") as client:
        assert "coder" in [model.id for model in client.models.list()]
        raw = client.chat.completions.with_raw_response.create(model="coder", messages=HELLO, max_tokens=4)
        assert (raw.parse().model, raw.headers["x-sndr-engine"]) == ("coder", "one")
        stream = client.chat.completions.create(model="coder", messages=HELLO, max_tokens=4, stream=True)
        assert {chunk.model for chunk in stream} == {"coder"}
        for event in client.responses.create(model="coder", input="Hi", max_output_tokens=4, stream=True):
            if event.type == "response.completed":
                assert event.response.model == "coder"
    with anthropic.Anthropic(base_url=url(host), api_key="none") as agent:
        message = agent.messages.create(model="coder", max_tokens=4, messages=HELLO)
        assert message.model == "coder"

    done = ended(host, host.client.call(endpoint_ops.CUT_OVER, RouteTargets(engines=("two",)), id="coder"))
    assert done.error is None, done.error
    checks = CutOver.model_validate(done.result).checks
    assert [check.name for check in checks if check.passed] == [
        "models", "chat", "stream", "tool call", "long prompt", "three at once",
    ]  # fmt: skip
    assert ask(host, "coder").headers["x-sndr-engine"] == "two"
    with ThreadPoolExecutor() as pool:
        written = [pool.submit(_by_openai, host), pool.submit(_by_curl, host)]
        wait_for(lambda: _decoding(host) == 2, "two streams", 30)
        # The last, since the model ends this one by itself.
        written.append(pool.submit(_by_anthropic, host))
        wait_for(lambda: _decoding(host) == 3, "three streams", 30)
        host.client.call(endpoint_ops.ROUTE_BACK, id="coder")
        assert ask(host, "coder").headers["x-sndr-engine"] == "one"
        two = host.client.call(ops.STOP, StopEngine(wait=120), id="two")
        assert [one.result(120) for one in written] == ["two"] * 3, "each ends where it began, and whole"
    wait_for(lambda: host.client.call(ops.ENGINE, id=two.id).state is EngineState.UNLOADED, "its end", 20)
    assert ask(host, "coder", stream=True).headers["x-sndr-engine"] == "one"

    failed = ended(host, host.client.call(endpoint_ops.CUT_OVER, RouteTargets(engines=("gone",)), id="coder"))
    assert failed.error is not None
    assert failed.error.reason is Reason.NO_ENGINE_RUNS
    assert ask(host, "coder").headers["x-sndr-engine"] == "one"


def test_a_provider_is_asked_where_that_is_allowed_and_said(host: RunningHost, provider: Provider) -> None:
    out = SetRoute(provider=provider)
    status = host.client.call(endpoint_ops.SET_ROUTE, out, id="out")
    assert (status.answers, status.targets[0].state) == (False, TargetState.NOT_ALLOWED)
    assert ask(host, "out").json()["error"]["code"] in ("remote_not_allowed", "no_engine_runs")

    out = SetRoute(provider=provider, allow_remote=True)
    assert host.client.call(endpoint_ops.SET_ROUTE, out, id="out").answers is None, "nobody has asked it yet"
    with openai.OpenAI(base_url=url(host, "/v1"), api_key="none") as client:
        raw = client.chat.completions.with_raw_response.create(model="out", messages=HELLO, max_tokens=4)
        assert raw.parse().model == "out"
        assert raw.headers["x-sndr-engine"] == provider.url.split("/")[2]
        stream = client.chat.completions.create(model="out", messages=HELLO, max_tokens=4, stream=True)
        assert {chunk.model for chunk in stream} == {"out"}
        place = {"type": "object", "properties": {"place": {"type": "string"}}}
        tools: list[Any] = [{"type": "function", "function": {"name": "get_weather", "parameters": place}}]
        called = client.chat.completions.create(
            model="out",
            messages=[{"role": "user", "content": "What is the weather in Berlin?"}],
            tools=tools,
            tool_choice="required",
        )
        assert called.choices[0].message.tool_calls
        with pytest.raises(openai.BadRequestError) as too_long:
            client.chat.completions.create(model="out", messages=[{"role": "user", "content": "no " * 9000}])
        assert too_long.value.code == "context_length_exceeded"
    with (
        anthropic.Anthropic(base_url=url(host), api_key="none") as agent,
        agent.messages.stream(model="out", max_tokens=4, messages=HELLO) as events,
    ):
        assert events.get_final_message().model == "out"
    answer = httpx.post(
        url(host, "/api/chat"),
        json={"model": "out", "messages": HELLO, "stream": False, "options": {"num_predict": 4}},
        trust_env=False,
        timeout=60,
    )
    assert (answer.status_code, answer.json()["model"]) == (200, "out")

    seen = host.client.call(endpoint_ops.ROUTE, id="out")
    assert (seen.answers, seen.targets[0].state) == (True, TargetState.ANSWERED)

    log = host.client.call(endpoint_ops.REQUESTS, RequestQuery()).requests
    assert {request.provider for request in log if request.model == "out"} == {provider.url.split("/")[2]}
    assert KEY not in host.client.call(endpoint_ops.ROUTES).model_dump_json()
    kept = [path.read_bytes() for path in host.folders.data.rglob("*") if path.is_file()]
    assert not any(KEY.encode() in content for content in kept)


def test_a_route_that_leads_to_this_endpoint_is_refused_at_once(host: RunningHost) -> None:
    own = Provider(url=url(host, "/v1"), model="loop", context=2048, slots=4)
    host.client.call(endpoint_ops.SET_ROUTE, SetRoute(provider=own, allow_remote=True), id="loop")
    answer = ask(host, "loop")
    assert answer.is_client_error
    assert "came from this endpoint itself" in answer.json()["error"]["message"]
    said = host.client.call(endpoint_ops.REQUESTS, RequestQuery()).requests
    assert len(said) == 1, "it went round once"


def test_leaving_ends_the_providers_work(host: RunningHost, provider: Provider) -> None:
    host.client.call(endpoint_ops.SET_ROUTE, SetRoute(provider=provider, allow_remote=True), id="out")
    body = {"model": "out", "messages": HELLO, "max_tokens": 2000, "stream": True, "ignore_eos": True}
    with httpx.stream(
        "POST", url(host, "/v1/chat/completions"), json=body, trust_env=False, timeout=60
    ) as answer:
        # Without a name the iterator, and with it the answer, would end here.
        pieces = answer.iter_bytes()
        next(pieces)
        wait_for(lambda: _busy(provider) == 1, "its work", 10)
    wait_for(lambda: _busy(provider) == 0, "the provider's slot", 10)


def _busy(provider: Provider) -> int:
    answer = httpx.get(
        provider.url.removesuffix("/v1") + "/slots",
        headers={"authorization": f"Bearer {KEY}"},
        trust_env=False,
    )
    return sum(slot["is_processing"] for slot in answer.json())


def test_an_id_moves_to_a_provider_and_back_and_a_wrong_key_moves_nothing(
    host: RunningHost, provider: Provider, home: Path
) -> None:
    start(host, "one")
    host.client.call(endpoint_ops.SET_ROUTE, SetRoute(engines=("one",)), id="coder")
    wrong = home / "wrong"
    wrong.write_text("sk-wrong")
    wrong.chmod(0o600)
    bad = RouteTargets(provider=provider.model_copy(update={"key_file": str(wrong)}), allow_remote=True)
    failed = ended(host, host.client.call(endpoint_ops.CUT_OVER, bad, id="coder"))
    assert failed.error is not None
    assert failed.error.reason is Reason.VERIFICATION_FAILED
    assert failed.error.evidence["failed"] in ("models", "chat")
    assert "sk-wrong" not in failed.model_dump_json()
    assert ask(host, "coder").headers["x-sndr-engine"] == "one"

    good = RouteTargets(provider=provider, allow_remote=True)
    done = ended(host, host.client.call(endpoint_ops.CUT_OVER, good, id="coder"))
    assert done.error is None, done.error
    assert ask(host, "coder").headers["x-sndr-engine"] != "one"
    assert host.client.call(endpoint_ops.ROUTE_BACK, id="coder").route.targets.engines == ("one",)
    with pytest.raises(HostError):
        host.client.call(endpoint_ops.SET_ROUTE, SetRoute.of(good), id="a.b/c")
