"""Checks of answers against servers that answer well, badly, and with intent."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from engine_host.bench.checks import needle, speech, tools
from engine_host.bench.checks.levels import LEVELS, CutShortError, verified
from engine_host.bench.checks.subject import Judge, Subject, Verdict, skipped
from engine_host.protocol.bench.checks import CheckName, Outcome, VerifyLevel
from tests.unit.asynchronous import run

Body = dict[str, Any]
Message = dict[str, Any]
Server = Callable[[Body], Message | httpx.Response]


def subject_of(server: Server, *, props: Body | None = None, **known: Any) -> Subject:
    """A subject before a server that is a function from a request's body to a message."""

    def handle(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/props":
            return httpx.Response(200, json=props) if props is not None else httpx.Response(404)
        if request.url.path == "/v1/models":
            return httpx.Response(200, json={"data": [{"id": "m"}]})
        body = json.loads(request.content)
        said = server(body)
        if isinstance(said, httpx.Response):
            return said
        prompt = sum(len(str(one.get("content")).split()) for one in body["messages"])
        usage = {"prompt_tokens": prompt, "completion_tokens": 5}
        if not body.get("stream"):
            choice = {"message": said, "finish_reason": "stop"}
            return httpx.Response(200, json={"choices": [choice], "usage": usage})
        events: list[Body] = [{"choices": [{"delta": part}]} for part in pieces(said)]
        events += [{"choices": [{"delta": {}, "finish_reason": "stop"}]}, {"choices": [], "usage": usage}]
        lines = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
        return httpx.Response(200, text=f"{lines}data: [DONE]\n\n")

    client = httpx.AsyncClient(transport=httpx.MockTransport(handle), base_url="http://engine")
    return Subject(client, "m", 7, **known)


def pieces(said: Message) -> list[Message]:
    """A message in the parts in which it is streamed: arguments of calls come in halves."""
    parts: list[Message] = [{name: said[name]} for name in ("reasoning_content", "content") if said.get(name)]
    for index, one in enumerate(said.get("tool_calls", ())):
        function = one["function"]
        half = len(function["arguments"]) // 2
        named = {"name": function["name"], "arguments": function["arguments"][:half]}
        parts.append({"tool_calls": [{"index": index, "function": named}]})
        parts.append(
            {"tool_calls": [{"index": index, "function": {"arguments": function["arguments"][half:]}}]}
        )
    return parts


def call(name: str, arguments: str) -> Message:
    return {"content": "", "tool_calls": [{"function": {"name": name, "arguments": arguments}}]}


def good(body: Body) -> Message:
    """An engine that does everything right."""
    question = str(body["messages"][-1]["content"])
    if "Oslo" in question:
        return call("get_weather", '{"city": "Oslo"}')
    if "Add 17" in question:
        return call("add_numbers", '{"a": 17, "b": 25}')
    if "key of the archive" in question:
        fact = question.split("The key of the archive is ")[1].split(".")[0]
        return {"content": f"It is {fact}."}
    if "2 + 3" in question and body.get("chat_template_kwargs", {}).get("enable_thinking"):
        return {"reasoning_content": "Two and three are five.", "content": "It is 5."}
    return {"content": "Paris lies in France, and five is two and three; that is all there is to say."}


def without_calls(body: Body) -> Message:
    return {"content": "I would rather not."}


def leaking(body: Body) -> Message:
    return {"content": "<tool_call><function=get_weather>"} if "Oslo" in str(body) else good(body)


def calling_always(_body: Body) -> Message:
    return call("get_weather", '{"city": "Oslo"}')


def sending(arguments: str) -> Server:
    return lambda body: call("get_weather", arguments) if "Oslo" in str(body) else good(body)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("server", "outcome", "why"),
    [
        (good, Outcome.PASSED, ""),
        (without_calls, Outcome.FAILED, "it calls no tool"),
        (leaking, Outcome.FAILED, "where nobody reads it as a call"),
        (calling_always, Outcome.FAILED, "no tool is needed"),
        (sending('{"city": "Rome"}'), Outcome.FAILED, "city is 'Rome' instead of 'Oslo'"),
        (sending('{"city": "Oslo"'), Outcome.FAILED, "no JSON object"),
        (sending('["Oslo"]'), Outcome.FAILED, "no JSON object"),
        (sending("[" * 100_000), Outcome.FAILED, "no JSON object"),
        (sending('{"town": "Oslo"}'), Outcome.FAILED, "named town"),
        (lambda _body: httpx.Response(400, text="no parser"), Outcome.SKIPPED, "takes no tools"),
        (lambda _body: httpx.Response(500, text="\x1b[31m" * 10_000), Outcome.FAILED, "it answered 500"),
    ],
)
def test_calls_of_tools_are_judged_by_name_arguments_and_json(
    server: Server, outcome: Outcome, why: str, streamed: bool
) -> None:
    verdict = run(tools.tool_calls(subject_of(server), streamed=streamed))
    assert (verdict.outcome, why in verdict.why) == (outcome, True), verdict
    assert len(verdict.why) < 1000


@pytest.mark.parametrize(
    "calls",
    [
        7,
        [None, {"function": None}],
        [{"index": 1 << 40, "function": {"name": "get_weather", "arguments": "{}"}}],
        [{"index": "x", "function": {"name": "get_weather"}}],
        [{"function": {"name": ["get_weather"], "arguments": 5}}],
    ],
)
def test_what_is_no_call_is_none(calls: object) -> None:
    verdict = run(
        tools.tool_calls(subject_of(lambda _body: {"content": "", "tool_calls": calls}), streamed=False)
    )
    assert verdict.outcome is Outcome.FAILED


def test_a_model_without_tools_is_skipped() -> None:
    caps = {"chat_template_caps": {"supports_tools": False}}
    assert run(tools.tool_call(subject_of(good, props=caps))).outcome is Outcome.SKIPPED
    assert run(tools.tool_call(subject_of(without_calls, strict=False))).outcome is Outcome.SKIPPED
    assert run(tools.tool_call(subject_of(without_calls, props={"chat_template_caps": 5}))).why


def takes(most: int, forgets: int = 1 << 40) -> Server:
    """A server with a context, which forgets facts in texts of more words than it remembers."""

    def answer(body: Body) -> Message | httpx.Response:
        words = len(str(body["messages"][-1]["content"]).split())
        if words > most:
            return httpx.Response(400, text="too long")
        return {"content": "I do not know it."} if words > forgets else good(body)

    return answer


def test_boundary_and_recall_are_judged_apart() -> None:
    whole = run(needle.context_ladder(subject_of(takes(4_000), context=4_000)))
    assert whole.outcome is Outcome.PASSED
    assert 3_500 < int(str(whole.evidence["taken"])) <= 3_680
    short = run(needle.context_ladder(subject_of(takes(2_500), context=4_000)))
    assert short.why.startswith("boundary: at 3,000 tokens: it answered 400")
    forgetful = run(needle.context_ladder(subject_of(takes(4_000, forgets=2_500), context=4_000)))
    assert forgetful.why.startswith("recall: the fact is not found at")
    # Who does not find it in a short text either is not blamed for long ones.
    simple = run(needle.context_ladder(subject_of(takes(4_000, forgets=100), context=4_000)))
    assert simple.outcome is Outcome.PASSED
    assert "not judged" in str(simple.evidence["recall"])
    mad = run(needle.context_ladder(subject_of(lambda _body: {"content": "so it is " * 99}, context=4_000)))
    assert "goes in a circle" in mad.why
    assert run(needle.needle_long(subject_of(good, context=4_000))).outcome is Outcome.SKIPPED


def test_a_server_that_does_not_count_cannot_be_judged() -> None:
    def uncounted(_body: Body) -> httpx.Response:
        return httpx.Response(
            200, text='data: {"choices": [{"delta": {"content": "x"}}]}\n\ndata: [DONE]\n\n'
        )

    assert run(needle.context_ladder(subject_of(uncounted, context=4_000))).outcome is Outcome.SKIPPED


def test_the_ladder_ends_below_the_context() -> None:
    assert needle.ladder(8_192) == (2_048, 4_096, 6_144, 7_536)
    assert needle.ladder(200_000) == (95_000, 125_000, 155_000, 184_000)


@pytest.mark.parametrize(
    ("server", "judge", "outcome"),
    [
        (good, speech.answers_at_all, Outcome.PASSED),
        (good, speech.known_answer, Outcome.PASSED),
        (lambda _body: {"content": "A nice town."}, speech.known_answer, Outcome.FAILED),
        (good, speech.thinking, Outcome.PASSED),
        (without_calls, speech.thinking, Outcome.SKIPPED),
        (lambda _body: {"content": "<think>so</think> 5"}, speech.thinking, Outcome.FAILED),
        (lambda _body: {"reasoning_content": "so", "content": ""}, speech.thinking, Outcome.FAILED),
        (good, speech.streams, Outcome.FAILED),
        (lambda _body: {"content": "la " * 200}, speech.long_answer, Outcome.FAILED),
        (good, speech.patches_live, Outcome.SKIPPED),
    ],
)
def test_plain_answers_are_judged(server: Server, judge: Judge, outcome: Outcome) -> None:
    assert run(judge(subject_of(server))).outcome is outcome


def test_levels_have_the_checks_that_they_promise() -> None:
    assert {level: len(rows) for level, rows in LEVELS.items()} == {
        VerifyLevel.SMOKE: 4,
        VerifyLevel.FULL: 9,
        VerifyLevel.STRESS: 8,
    }
    for level in (VerifyLevel.SMOKE, VerifyLevel.FULL):
        assert CheckName.PATCHES_LIVE in {name for name, _, _ in LEVELS[level]}


def test_a_cancelled_verification_tells_what_it_judged() -> None:
    async def work() -> list[CheckName]:
        asked = asyncio.Event()

        async def patches() -> Verdict:
            asked.set()
            await asyncio.Event().wait()
            return skipped("never")

        subject = subject_of(good, patches=patches)
        going = asyncio.create_task(verified(subject, VerifyLevel.SMOKE, lambda _title: None))
        await asked.wait()
        going.cancel()
        with pytest.raises(CutShortError) as raised:
            await going
        return [check.name for check in raised.value.done]

    assert run(work()) == [CheckName.ANSWERS]
