"""A text is cut, asked about and compared; the engines that answer here are fakes."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine_host.bench.quality.comparing import observe, quality
from engine_host.bench.quality.figures import Position
from engine_host.bench.quality.passages import DEPTHS, passages
from engine_host.bench.quality.subjects import LlamaCppSubject, Subject, VllmSubject
from engine_host.core.errors import HostError
from engine_host.engines.temporary import TemporaryEngine
from engine_host.protocol.bench.quality import MeasureQuality
from tests.plan_samples import vllm_plan
from tests.unit.asynchronous import run

Answer = Callable[[str, dict[str, Any]], Any]
TEXT = "".join(chr(97 + number % 26) for number in range(4000))


async def letters(text: str) -> list[int]:
    return [ord(letter) for letter in text]


def engine(answer: Answer) -> TemporaryEngine:
    def handler(request: httpx.Request) -> httpx.Response:
        found = answer(request.url.path, json.loads(request.content))
        if isinstance(found, bytes):
            return httpx.Response(200, content=found)
        return httpx.Response(200, json=found)

    client = httpx.AsyncClient(transport=httpx.MockTransport(handler), base_url="http://engine")
    return TemporaryEngine(vllm_plan(), client, 1.0, Path("/none"))


def test_windows_needles_and_beginnings_are_cut() -> None:
    asked = MeasureQuality(positions=300, context=256, answers=3, answer_tokens=20)
    found = run(passages(TEXT, asked, [1], letters))
    assert [len(window) for window in found.windows] == [256, 256, 128 + 300 - 256]
    assert found.positions == 300
    assert all(window[0] == 1 for window in found.windows)
    assert [needle.depth for needle in found.needles] == list(DEPTHS)
    for needle in found.needles:
        assert len(needle.prompt) + len(needle.answer) == 256
        text = "".join(map(chr, needle.prompt))
        key = "".join(map(chr, needle.answer))
        assert f"is{key}." in text
        assert text.endswith("The key of the archive is")
    assert len(found.beginnings) == 3
    assert len(set(found.beginnings)) == 3


def test_a_text_that_is_too_short_is_refused_with_its_length() -> None:
    with pytest.raises(HostError) as raised:
        run(passages("short", MeasureQuality(context=256), [], letters))
    assert raised.value.reason == "bad_request"
    assert "5 tokens" in raised.value.problem.message


def vllm(path: str, body: dict[str, Any]) -> Any:
    if path == "/tokenize":
        tokens = [ord(letter) for letter in body["prompt"]]
        return {"tokens": [2, *tokens] if body["add_special_tokens"] else tokens}
    listed = [None, *({str(token): {"logprob": -0.5, "rank": 1}} for token in body["prompt"][1:])]
    choice = {"token_ids": [7] * body["max_tokens"], "prompt_logprobs": listed}
    return {"choices": [choice]}


def llamacpp(path: str, body: dict[str, Any]) -> Any:
    if path == "/tokenize":
        tokens = [ord(letter) for letter in body["content"]]
        return {"tokens": [2, *tokens, 3] if body["add_special"] else tokens}
    top = [{"id": len(body["prompt"]), "logprob": -0.1}, {"id": 5, "logprob": None}]
    return {"tokens": [7] * body["n_predict"], "completion_probabilities": [{"top_logprobs": top}]}


@pytest.mark.parametrize("answer", [vllm, llamacpp])
def test_an_engine_is_asked_in_its_own_words(answer: Answer) -> None:
    started = engine(answer)
    subject: Subject = VllmSubject(started, 8) if answer is vllm else LlamaCppSubject(started, 8)
    assert run(subject.tokens("ab")) == [97, 98]
    started = engine(answer)
    subject = VllmSubject(started, 8) if answer is vllm else LlamaCppSubject(started, 8)
    assert run(subject.start_tokens()) == [2]
    said = run(subject.predictions([10, 11, 12], 1))
    assert [one.token for one in said] == [11, 12]
    if answer is llamacpp:
        assert [one.best for one in said] == [1, 2], "the token behind one and behind two"
    else:
        assert all(one.is_listed for one in said)
    assert run(subject.answer([1], 3)) == [7, 7, 7]


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\xff",
        b"[]",
        {"choices": []},
        {"choices": [{"prompt_logprobs": [None, 1], "token_ids": ["\x1b"]}]},
        {"choices": [{"prompt_logprobs": [None, {"x": {"logprob": 1}}]}]},
        {"choices": [{"prompt_logprobs": [None, {}]}]},
        {"completion_probabilities": [{"top_logprobs": [{"id": "a", "logprob": 1}]}]},
        {"completion_probabilities": [{"top_logprobs": []}]},
        {"completion_probabilities": 7},
        {"tokens": [1.5]},
    ],
)
@pytest.mark.parametrize("kind", [VllmSubject, LlamaCppSubject])
def test_what_an_engine_says_otherwise_is_an_error_with_a_reason(kind: Any, said: Any) -> None:
    subject = kind(engine(lambda _path, _body: said), 8)
    with pytest.raises(HostError) as raised:
        run(subject.predictions([1, 2], 1))
    assert raised.value.reason == "engine_not_ready"


class FakeSubject:
    """Is certain of the next letter, as far as `sure` goes."""

    def __init__(self, sure: float, answers: list[int]) -> None:
        self._sure = sure
        self._answers = answers

    async def predictions(self, tokens: Any, first: int) -> list[Position]:
        sure, unsure = math.log(self._sure), math.log(1 - self._sure)
        return [Position(token, {token: sure, token + 1: unsure}) for token in tokens[first:]]

    async def answer(self, _tokens: Any, _count: int) -> list[int]:
        return self._answers

    async def tokens(self, text: str) -> list[int]:
        return await letters(text)

    async def start_tokens(self) -> list[int]:
        return []


def test_a_type_is_compared_with_the_reference() -> None:
    asked = MeasureQuality(positions=64, context=256, answers=2, answer_tokens=3)
    cut = run(passages(TEXT, asked, [], letters))
    told: list[tuple[str, float]] = []
    tell = lambda what, share: told.append((what, share))  # noqa: E731
    reference = run(observe(FakeSubject(0.9, [1, 2, 3]), cut, 3, tell))
    other = run(observe(FakeSubject(0.4, [1, 2, 9]), cut, 3, tell))
    assert told[0] == ("window 1 of 1", 0.0)
    first = quality("f16", reference, None, cut.needles, 200)
    assert first.perplexity == pytest.approx(1 / 0.9)
    assert (first.divergence, first.agreed) == (None, ())
    assert all(one.found for one in first.needles)
    second = quality("q4_0", other, reference, cut.needles, 200)
    wanted = 0.9 * math.log(0.9 / 0.4) + 0.1 * math.log(0.1 / 0.6)
    assert second.divergence == pytest.approx(wanted)
    assert second.divergence_99 == pytest.approx(wanted)
    assert second.same_best == 0.0
    assert second.agreed == (2, 2)
    assert not any(one.found for one in second.needles)
