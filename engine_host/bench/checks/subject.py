"""The subject of a check, how it is asked, and the verdict on it."""

import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from engine_host.bench.lab import load
from engine_host.core.bounds.cut_text import cut_text
from engine_host.core.outside import answers
from engine_host.protocol.base import JsonValue
from engine_host.protocol.bench.checks import Check, CheckName, Outcome

GREEDY = {"temperature": 0.0}
_SHOWN = 300
_MOST = 1 << 20
_PROPS_SECONDS = 5.0


@dataclass(frozen=True)
class Verdict:
    """An outcome with its reason and what was seen."""

    outcome: Outcome
    why: str = ""
    evidence: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True)
class Subject:
    """An engine, or any server of OpenAI's interface, that is checked.

    `context` are the tokens of one stream, None where nobody knows. `strict` is False where it is not known
    that the server means to offer tools. Streams are asked with the fields `beside`. `patches` judges the
    patches of its plan, `acceptance` waits for a reading after a moment and judges the acceptance length
    since the start; both are the host's.
    """

    client: httpx.AsyncClient
    model: str
    seed: int
    context: int | None = None
    strict: bool = True
    beside: Mapping[str, Any] = field(default_factory=dict)
    patches: Callable[[], Awaitable[Verdict]] | None = None
    acceptance: Callable[[float], Awaitable[Verdict]] | None = None

    async def ask(
        self,
        question: str | Sequence[load.Message],
        *,
        max_tokens: int,
        tools: Sequence[Mapping[str, Any]] = (),
        thinking: bool | None = None,
        streamed: bool = True,
    ) -> load.Answered:
        """Ask at temperature 0; `thinking` None leaves it to the model."""
        messages = [{"role": "user", "content": question}] if isinstance(question, str) else question
        more: dict[str, Any] = dict(self.beside) if streamed else {}
        if tools:
            more["tools"] = list(tools)
        if thinking is not None:
            more["chat_template_kwargs"] = {"enable_thinking": thinking}
        return await load.ask(
            self.client,
            self.model,
            messages,
            max_tokens=max_tokens,
            seed=self.seed % (1 << 31),
            sampling=GREEDY,
            more=more,
            streamed=streamed,
        )

    async def takes_no_tools(self) -> bool:
        """Return True where llama.cpp's server says that the model's template knows no tools."""
        try:
            answer = await answers.fetch(self.client, "/props", most=_MOST, seconds=_PROPS_SECONDS)
            caps = answer.object().get("chat_template_caps") if answer.status == httpx.codes.OK else None
        except (httpx.HTTPError, answers.AnswerError, ValueError, AttributeError):
            return False
        return isinstance(caps, dict) and caps.get("supports_tools") is False


Judge = Callable[[Subject], Coroutine[Any, Any, Verdict]]


def passed(**evidence: JsonValue) -> Verdict:
    """Return a pass with what was seen."""
    return Verdict(Outcome.PASSED, evidence=evidence)


def failed(why: str, **evidence: JsonValue) -> Verdict:
    """Return a failure with its reason and what was seen."""
    return Verdict(Outcome.FAILED, cut_text(why, _SHOWN), evidence)


def skipped(why: str, **evidence: JsonValue) -> Verdict:
    """Return that it could not be judged here, and why."""
    return Verdict(Outcome.SKIPPED, cut_text(why, _SHOWN), evidence)


def shown(text: str) -> str:
    """Return so much of an answer as evidence needs."""
    return cut_text(text, _SHOWN)


async def judged(name: CheckName, title: str, judge: Judge, subject: Subject) -> Check:
    """Carry out one check and time it."""
    began = time.perf_counter()
    verdict = await judge(subject)
    return Check(
        name=name,
        title=title,
        outcome=verdict.outcome,
        why=verdict.why,
        seconds=round(time.perf_counter() - began, 3),
        evidence=dict(verdict.evidence),
    )
