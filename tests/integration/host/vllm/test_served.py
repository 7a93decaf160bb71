"""The bundled checkpoint in the real vLLM, through a real host: one start, shared by all tests here."""

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anthropic
import httpx
import openai
import psutil
import pytest

from engine_host.protocol.bench.lab import RunBench, WorkloadName
from engine_host.protocol.endpoint.requests import RequestQuery
from engine_host.protocol.endpoint.routes import SetRoute
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.engines import EngineState, RequestState, StopEngine
from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import JobState
from engine_host.protocol.launch.fit import Measured
from engine_host.protocol.operations import bench as bench_ops
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import table as ops
from tests.integration.host.conftest import alive, files_below, home_left_empty, wait_for
from tests.integration.host.test_demo_model import WEATHER
from tests.integration.host.vllm.served import START, Served
from tests.integration.privacy.canary import WORD, ask_everything, found_below

pytestmark = pytest.mark.timeout(START + 80)
ADD = "Write a function that adds two numbers"


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """vLLM at work; what a test leaves is found by the last test of this file."""
    with home_left_empty("sndr-v-") as folder:
        found = Served(folder)
        yield found
        found.end()


def test_it_is_ready_and_says_how_it_got_there(served: Served) -> None:
    engine = served.engine
    assert engine.engine == "vllm"
    assert engine.plan.model == "sndr-demo-safetensors", "the name means the form that vLLM reads"
    assert engine.verified is not None
    assert engine.verified.token_generated
    assert len(engine.stages) >= 3
    assert all(stage.ended_at is not None for stage in engine.stages)
    (model,) = served.client.models.list()
    assert (model.id, model.owned_by) == ("sndr-demo", "vllm")


def test_its_cache_has_as_many_tokens_as_fit_predicted(served: Served) -> None:
    """A hybrid: states, a block that grew for them, and groups of layers of two kinds."""

    def compared() -> dict[str, Measured] | None:
        return {one.part: one for one in served.host.client.call(ops.FIT_STARTS).starts} or None

    tokens = wait_for(compared, "a start that was compared")["KV tokens"]
    assert tokens.engine == "vllm"
    assert tokens.predicted == tokens.measured


def test_a_bench_run_that_is_cancelled_ends_with_the_engine_idle(served: Served) -> None:
    """By vLLM's own counters, once the job has ended: nothing waits for a request to run out."""
    client = served.host.client
    job = client.call(bench_ops.RUN_BENCH, RunBench(workload=WorkloadName.SERVING, only=("burst",)))
    wait_for(lambda: served.metric("vllm:num_requests_running") > 0, "it is asked")
    client.call(ops.CANCEL_JOB, id=job.id)
    ended = wait_for(lambda: one if (one := client.call(ops.JOB, id=job.id)).ended else None, "its end")
    assert ended.state is JobState.CANCELLED
    assert "at work" not in ended.left, ended
    assert served.metric("vllm:num_requests_running") == 0
    assert served.metric("vllm:num_requests_waiting") == 0


def test_a_chat_and_a_tool_call(served: Served) -> None:
    answer = served.client.chat.completions.create(
        model="sndr-demo", messages=[{"role": "user", "content": ADD}], temperature=0, max_tokens=120
    )
    assert "def " in (answer.choices[0].message.content or "")
    assert answer.choices[0].finish_reason == "stop"
    called = served.client.chat.completions.create(
        model="sndr-demo",
        messages=[{"role": "user", "content": "What is the weather in Oslo?"}],
        tools=[WEATHER],  # type: ignore[list-item]
        temperature=0,
    )
    (call,) = called.choices[0].message.tool_calls or (None,)
    assert call is not None
    assert call.type == "function"
    assert json.loads(call.function.arguments) == {"city": "Oslo"}


@pytest.mark.parametrize(
    ("asked", "allowed"),
    [
        ({"grammar": 'root ::= "yes" | "no"'}, ("yes", "no")),
        ({"json_schema": {"type": "boolean"}}, ("true", "false")),
        ({"guided_choice": ["red", "blue"]}, ("red", "blue")),
        ({"structured_outputs": {"regex": "[a]{3}"}}, ("aaa",)),
    ],
)
def test_a_form_holds_in_whosever_words(served: Served, asked: Any, allowed: tuple[str, ...]) -> None:
    answer = served.client.chat.completions.create(
        model="sndr-demo", messages=[{"role": "user", "content": "hi"}], max_tokens=12, extra_body=asked
    )
    assert answer.choices[0].message.content in allowed


def test_choices_of_tools_that_vllm_itself_does_not_keep(served: Served) -> None:
    asked: Any = {
        "model": "sndr-demo",
        "messages": [{"role": "user", "content": "What is the weather in Oslo?"}],
        "max_tokens": 60,
        "temperature": 0,
    }
    tools: Any = [WEATHER]
    none = served.client.chat.completions.create(**asked, tools=tools, tool_choice="none")
    assert none.choices[0].message.content
    assert served.client.chat.completions.create(**asked, tools=[]).choices[0].message.content
    allowed: Any = {"mode": "required", "tools": [{"type": "function", "function": {"name": "get_weather"}}]}
    called = served.client.chat.completions.create(
        **asked, tools=tools, tool_choice={"type": "allowed_tools", "allowed_tools": allowed}
    )
    assert called.choices[0].message.tool_calls
    picture: Any = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
    with pytest.raises(openai.BadRequestError, match="takes no pictures") as refused:
        served.client.chat.completions.create(
            model="sndr-demo", messages=[{"role": "user", "content": picture}]
        )
    assert refused.value.code == "modality_unsupported"


def test_clients_of_ollama_and_llamacpp(served: Served) -> None:
    root = f"http://127.0.0.1:{served.host.port}"
    with httpx.Client(base_url=root, timeout=120, trust_env=False) as client:
        chat: dict[str, Any] = {
            "model": "sndr-demo:latest",
            "messages": [{"role": "user", "content": "What is the weather in Oslo?"}],
            "tools": [WEATHER],
            "options": {"temperature": 0, "num_predict": 120},
        }
        told = [json.loads(line) for line in client.post("/api/chat", json=chat).text.splitlines()]
        calls = [call for one in told for call in one["message"].get("tool_calls", ())]
        assert [call["function"] for call in calls] == [
            {"name": "get_weather", "arguments": {"city": "Oslo"}}
        ]
        assert told[-1]["done"] is True
        assert told[-1]["eval_count"] > 0
        text = {"model": "sndr-demo", "prompt": "def add", "raw": True, "stream": False}
        raw = client.post("/api/generate", json={**text, "options": {"num_predict": 5}}).json()
        assert raw["eval_count"] == 5

        native = {"prompt": "def add", "n_predict": 4, "temperature": 0, "ignore_eos": True}
        whole = client.post("/completion", json=native).json()
        assert (whole["tokens_predicted"], whole["stop_type"]) == (4, "limit")
        streamed = client.post("/completion", json={**native, "stream": True}).text
        frames = [json.loads(one.removeprefix("data: ")) for one in streamed.split("\n\n") if one]
        assert "".join(one["content"] for one in frames) == whole["content"]

        pieces = client.post("/tokenize", json={"content": "def add", "with_pieces": True}).json()["tokens"]
        assert "".join(one["piece"] for one in pieces).replace("Ġ", " ") == "def add"
        numbers = [one["id"] for one in pieces]
        assert client.post("/detokenize", json={"tokens": numbers}).json()["content"] == "def add"
        prompt = client.post("/apply-template", json={"messages": chat["messages"]}).json()["prompt"]
        assert "weather in Oslo" in prompt
        assert client.post("/detokenize", json={"tokens": [10**9]}).status_code < 500
        figures = client.get("/metrics").text
        assert "vllm:generation_tokens_total{" in figures
        assert f'engine="{served.engine.id}"' in figures
    assert served.plan.patches is not None
    assert served.plan.patches.chosen
    for patch in served.plan.patches.chosen:
        live = rf'sndr_engine_patch_live\{{[^}}]*patch="{patch}",[^}}]*state="applied"[^}}]*\}} 1'
        assert re.search(live, figures), patch


def test_the_forms_of_agents(served: Served) -> None:
    answer = served.client.responses.create(
        model="sndr-demo", input=ADD, temperature=0, max_output_tokens=120
    )
    assert "def " in answer.output_text
    body = {"model": "sndr-demo", "max_tokens": 120, "messages": [{"role": "user", "content": ADD}]}
    url = f"http://127.0.0.1:{served.host.port}/v1/messages"
    message = httpx.post(url, json={**body, "temperature": 0}, timeout=60).json()
    assert "def " in message["content"][0]["text"]
    newest = served.requests().requests[0]
    assert (newest.route, newest.generated_tokens) == ("/v1/messages", message["usage"]["output_tokens"])


def test_openais_sdk_with_responses(served: Served) -> None:
    weather: Any = WEATHER["function"]
    tool: Any = {"type": "function", **weather}
    asked: Any = {"model": "sndr-demo", "temperature": 0, "tools": [tool]}
    history: Any = [{"role": "user", "content": "What is the weather in Oslo?"}]
    with served.client.responses.stream(input=history, **asked) as stream:
        kinds = [event.type for event in stream]
        (call,) = stream.get_final_response().output
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    assert call.type == "function_call"
    # As Codex and the AI SDK go on, and begin.
    history = [
        {"role": "developer", "content": "Be brief."},
        {"role": "developer", "content": [{"type": "input_text", "text": "Be kind."}]},
        *history,
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        call.model_dump(mode="json"),
        {"type": "function_call_output", "call_id": call.call_id, "output": "rain"},
    ]
    patch = {
        "type": "custom",
        "name": "patch",
        "format": {"type": "grammar", "syntax": "lark", "definition": "x"},
    }
    answer = served.client.responses.create(
        input=history, **{**asked, "tools": [tool, patch]}, max_output_tokens=8
    )
    assert answer.output_text
    with pytest.raises(openai.BadRequestError, match="keeps no answers"):
        served.client.responses.create(model="sndr-demo", input="x", previous_response_id="resp_1")


def test_anthropics_sdk(served: Served) -> None:
    client: Any = anthropic.Anthropic(
        base_url=f"http://127.0.0.1:{served.host.port}", api_key="any", max_retries=0, timeout=120
    )
    weather: Any = WEATHER["function"]
    tool = {"name": weather["name"], "input_schema": weather["parameters"]}
    asked: Any = {"model": "sndr-demo", "max_tokens": 120, "tools": [tool]}
    asked["extra_body"] = {"temperature": 0}
    question = [{"role": "user", "content": "What is the weather in Oslo?"}]
    with client.messages.stream(messages=question, **asked) as stream:
        text = [event.type for event in stream]
        message = stream.get_final_message()
    assert text[-1] == "message_stop"
    assert message.stop_reason == "tool_use"
    none = client.messages.create(messages=question, tool_choice={"type": "none"}, **asked)
    assert none.content[0].text
    assert client.messages.count_tokens(model="sndr-demo", messages=question).input_tokens
    late = [*question, {"role": "system", "content": "A reminder."}]
    assert client.messages.create(messages=late, **asked).content
    with pytest.raises(anthropic.BadRequestError, match=r"prompt is too long: \d+ tokens > 2048 maximum"):
        client.messages.create(messages=[{"role": "user", "content": "hello " * 3000}], **asked)
    client.close()


def test_another_id_for_it(served: Served) -> None:
    # vLLM answers 404 to a name that is not its own.
    served.host.client.call(endpoint_ops.SET_ROUTE, SetRoute(engines=("sndr-demo",)), id="coder")
    question: Any = [{"role": "user", "content": "Hi"}]
    try:
        whole = served.client.chat.completions.create(model="coder", messages=question, max_tokens=4)
        assert whole.model == "coder"
        streamed = served.client.chat.completions.create(
            model="coder", messages=question, max_tokens=4, stream=True
        )
        assert {chunk.model for chunk in streamed} == {"coder"}
        assert served.client.completions.create(model="coder", prompt="a", max_tokens=2).model == "coder"
        url = f"http://127.0.0.1:{served.host.port}"
        with httpx.Client(base_url=url, trust_env=False, timeout=120) as client:
            message = {"model": "coder", "messages": question, "max_tokens": 4}
            assert client.post("/v1/messages", json=message).json()["model"] == "coder"
            answer = client.post(
                "/v1/responses", json={"model": "coder", "input": "Hi", "max_output_tokens": 4}
            )
            assert answer.json()["model"] == "coder"
            assert client.post("/tokenize", json={"model": "coder", "content": "Hi"}).json()["tokens"]
            counted = client.post("/v1/messages/count_tokens", json=message).json()
            assert counted["input_tokens"]
    finally:
        served.host.client.call(endpoint_ops.REMOVE_ROUTE, id="coder")


def test_the_system_text_of_agents_is_read_in_every_form(served: Served) -> None:
    parts = [{"type": "text", "text": "Be brief."}]
    question: Any = {"role": "user", "content": ADD}
    read = set()
    for role in ("system", "developer"):
        for content in ("Be brief.", parts):
            first: Any = {"role": role, "content": content}
            answer = served.client.chat.completions.create(
                model="sndr-demo", messages=[first, question], temperature=0, max_tokens=4
            )
            assert answer.usage is not None
            read.add(answer.usage.prompt_tokens)
    said = served.client.responses.create(
        model="sndr-demo", instructions="Be brief.", input=ADD, temperature=0, max_output_tokens=4
    )
    assert said.usage is not None
    read.add(said.usage.input_tokens)
    body = {"model": "sndr-demo", "max_tokens": 4, "system": parts, "messages": [question]}
    message = httpx.post(f"http://127.0.0.1:{served.host.port}/v1/messages", json=body, timeout=60).json()
    read.add(message["usage"]["input_tokens"])
    assert len(read) == 1, "the same text, however it comes"


def test_a_stream_has_figures_that_its_client_did_not_ask_for(served: Served) -> None:
    stream = served.client.chat.completions.create(
        model="sndr-demo",
        messages=[{"role": "user", "content": ADD}],
        temperature=0,
        max_tokens=120,
        stream=True,
    )
    chunks = list(stream)
    assert all(chunk.choices and chunk.usage is None for chunk in chunks)
    newest = served.requests().requests[0]
    assert newest.state is RequestState.DONE
    # In llama.cpp's words, which some clients show.
    timings = (chunks[-1].model_extra or {})["timings"]
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert timings["prompt_n"] + timings["cache_n"] == newest.prompt_tokens
    assert timings["predicted_n"] == newest.generated_tokens
    assert timings["predicted_per_second"] > 0
    assert timings["prompt_ms"] > 0
    assert newest.ttft is not None
    assert newest.prompt_tokens
    assert newest.generated_tokens is not None
    assert newest.generated_tokens > 10


def test_the_book_shows_what_the_cache_served(served: Served) -> None:
    prompt = "".join(f"def function_{number}(x):\n    return x + {number}\n\n\n" for number in range(75))
    cached = []
    # A hybrid's states are kept only when a beginning comes a second time, so the third finds them.
    for stream in (False, False, False, True):
        hits = served.metric("vllm:prefix_cache_hits_total")
        answer = served.client.completions.create(
            model="sndr-demo", prompt=prompt, max_tokens=4, temperature=0, stream=stream
        )
        if stream:
            list(answer)
        newest = served.requests().requests[0]
        assert newest.state is RequestState.DONE
        assert newest.cached_tokens == served.metric("vllm:prefix_cache_hits_total") - hits
        assert newest.prompt_tokens is not None
        assert newest.cached_tokens < newest.prompt_tokens
        cached.append(newest.cached_tokens)
    assert cached[0] == 0
    assert cached[2] > 0
    assert cached[3] > 0


def test_a_prompt_of_one_token_is_answered(served: Served) -> None:
    answer = served.client.completions.create(
        model="sndr-demo", prompt="def", max_tokens=4, temperature=0, stream=False
    )
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == 1, "the tokenizer has a word for it"
    assert answer.choices[0].text


def test_code_is_completed_between_two_ends(served: Served) -> None:
    answer = served.client.completions.create(
        model="sndr-demo",
        prompt="def add(a, b):\n    ",
        suffix="\n\nprint(add(1, 2))\n",
        max_tokens=40,
        temperature=0,
    )
    assert answer.choices[0].text.strip()


def test_what_it_cannot_do_is_refused_with_a_reason(served: Served) -> None:
    with pytest.raises(openai.APIStatusError) as embeddings:
        served.client.embeddings.create(model="sndr-demo", input="x")
    assert (embeddings.value.status_code, embeddings.value.code) == (400, "embeddings_off")
    with pytest.raises(openai.BadRequestError) as long:
        served.client.completions.create(model="sndr-demo", prompt="word " * 4000, max_tokens=1)
    assert long.value.code == "context_length_exceeded"


def test_a_client_that_leaves_stops_the_engines_work(served: Served) -> None:
    before = served.metric("vllm:generation_tokens_total")
    stream: Any = served.client.chat.completions.create(
        model="sndr-demo",
        messages=[{"role": "user", "content": ADD}],
        max_tokens=1900,
        stream=True,
        extra_body={"ignore_eos": True},
    )
    chunks = iter(stream)
    assert next(chunks).usage is None

    def told() -> int:
        next(chunks)
        return served.requests().requests[0].generated_tokens or 0

    assert wait_for(told, "tokens while it writes") < 1900
    stream.close()
    wait_for(lambda: served.requests().requests[0].state is RequestState.CANCELLED, "the cancelled request")
    assert served.requests().requests[0].generated_tokens, "what was counted is kept"
    wait_for(lambda: served.metric("vllm:num_requests_running") == 0, "vLLM's end of the request")
    assert served.metric("vllm:generation_tokens_total") - before < 1900


def test_a_plan_made_meanwhile_says_what_it_replaces(served: Served) -> None:
    again = served.request().model_copy(update={"overrides": Overrides(context=1024, streams=2)})
    plan = served.host.client.call(ops.PLAN, again)
    assert "context: 2048 → 1024" in plan.changes
    assert plan.findings[0].id == "replaces"


def test_a_second_vllm_runs_beside_it_with_its_own_name_log_and_figures(served: Served) -> None:
    control, first = served.host.client, served.engine
    counter = "vllm:generation_tokens_total"
    before = served.metric(counter)
    alone = control.call(ops.PLAN, served.request("second"))
    assert [(one.id, one.name) for one in alone.beside] == [(first.id, "sndr-demo")]
    assert alone.instead_of == ()
    huge = control.call(ops.PLAN, served.request("second", kv_cache_gib=1 << 16))
    assert [one.severity for one in huge.findings if one.reason is Reason.OUT_OF_MEMORY] == ["error"]

    second = served.host.launch(served.request("second"), START)

    leader = psutil.Process(second.pid)
    pids = [leader.pid, *(child.pid for child in leader.children(recursive=True))]
    assert not set(pids) & set(served.pids)
    assert sorted(model.id for model in served.client.models.list()) == ["second", "sndr-demo"]
    question: Any = [{"role": "user", "content": ADD}]

    def ask(name: str) -> tuple[str, int]:
        answer = served.client.chat.completions.create(
            model=name, messages=question, temperature=0, max_tokens=24
        )
        assert answer.usage is not None
        return answer.model, answer.usage.completion_tokens

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(ask, ["sndr-demo", "second", "second"]))
    assert [name for name, _ in answers] == ["sndr-demo", "second", "second"]
    assert served.metric(counter) - before == answers[0][1]
    for engine, plan, count in ((first, served.plan, 1), (second, second.plan, 2)):
        asked = control.call(endpoint_ops.REQUESTS, RequestQuery(engine=engine.id)).requests
        assert {one.engine for one in asked} == {engine.id}
        assert len(asked) >= count
        log = served.host.folders.logs / "engines" / f"{engine.id}.log"
        assert plan.id in log.read_text(encoding="utf-8", errors="replace")
        readings = wait_for(lambda: served.host.engine(engine.id).readings, "its readings")  # noqa: B023
        assert readings.memory
    written = served.metric(counter, second.plan.id)
    assert written >= sum(tokens for name, tokens in answers if name == "second")
    figures = httpx.get(f"http://127.0.0.1:{served.host.port}/metrics", trust_env=False, timeout=60).text
    for engine in (first, second):
        assert re.search(
            rf'^vllm:generation_tokens_total\{{[^}}]*engine="{engine.id}"', figures, re.MULTILINE
        )

    control.call(ops.STOP, StopEngine(), id="second")
    served.host.until(second.id, EngineState.UNLOADED)
    assert [pid for pid in pids if alive(pid)] == []
    assert ask("sndr-demo")[0] == "sndr-demo"
    with pytest.raises(openai.NotFoundError):
        ask("second")


def test_it_writes_down_no_word_of_a_request(served: Served) -> None:
    said = ask_everything(served.host.port, "sndr-demo")
    assert {said["prompt"], said["stream of an answer"], said["responses"], said["messages"]} == {200}
    assert said["schema with a reference"] == 400
    log = served.host.folders.logs / "engines" / f"{served.engine.id}.log"
    assert "withheld:" in log.read_text(encoding="utf-8", errors="replace")
    assert found_below(WORD, served.home) == []
    caches = (path for path in served.host.folders.cache.rglob("*") if path.is_file())
    written = [path for path in caches if path.stat().st_mtime >= served.engine.created_at]
    assert [path for path in written if WORD.lower().encode() in path.read_bytes().lower()] == []


def test_it_stops_and_leaves_nothing(served: Served) -> None:
    assert served.shared_memory, "the three processes talk through shared memory"
    served.host.client.call(ops.STOP, StopEngine(), id=served.engine.id)
    served.host.until(served.engine.id, EngineState.UNLOADED)
    assert [pid for pid in served.pids if alive(pid)] == []
    assert [path for path in served.shared_memory if path.exists()] == []
    assert not [name for name in files_below(served.host.folders.run) if served.plan.id in name]
