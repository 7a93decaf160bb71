"""Checks of plain answers: that they come, make sense, come in pieces, and keep thoughts apart."""

import time

import httpx

from engine_host.bench.checks.subject import Subject, Verdict, failed, passed, shown, skipped
from engine_host.bench.lab import gates
from engine_host.core.outside import answers

_LEAST_PIECES = 5
_MOST_LIST = 4 << 20
_LIST_SECONDS = 30.0
_LONG = 2_000
_ROOM = 512
"""Tokens that a question and what a model puts around it take of a context, at most."""
_ESSAY = (
    "Write a long and detailed guide to lists, dictionaries and sets in Python for a beginner, with a section"
    " and an example for each."
)
_CODE = (
    "Write a complete Python module for a bank with accounts, deposits, withdrawals, transfers, a history, "
    "interest, errors of its own, type hints, docstrings, and tests for every function."
)
_PUZZLE = (
    "Think carefully. A farmer has 17 sheep, buys twice as many as he has, sells a third of all, and loses "
    "four to a wolf. How many are left? Explain each step."
)
# An engine whose arithmetic is broken knows neither; a model of some million weights may know one.
_KNOWN = (
    ("What is the capital of France? Answer with one word.", ("paris",)),
    ("What is 2 + 3?", ("5", "five")),
)


async def answers_at_all(subject: Subject) -> Verdict:
    """Judge that the engine lists its model and says something."""
    try:
        listed = await answers.fetch(subject.client, "/v1/models", most=_MOST_LIST, seconds=_LIST_SECONDS)
        found = listed.object().get("data") if listed.status == httpx.codes.OK else None
    except (httpx.HTTPError, answers.AnswerError, ValueError, AttributeError) as error:
        return failed(f"it does not list its models: {error}")
    names = [one.get("id") for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    if subject.model not in names:
        return failed(f"its list of models has no {subject.model}")
    answer = await subject.ask("Say hello.", max_tokens=64, thinking=False)
    fault = answer.error or gates.fault(answer.text, least_variety=None)
    return failed(fault, said=shown(answer.text)) if fault else passed(said=shown(answer.text))


async def known_answer(subject: Subject) -> Verdict:
    """Judge that it knows the capital of France, or a small sum."""
    said = {}
    for question, wanted in _KNOWN:
        answer = await subject.ask(question, max_tokens=256, thinking=False)
        if answer.error:
            return failed(answer.error)
        said[question] = shown(answer.text)
        if any(word in answer.text.casefold() for word in wanted):
            return passed(**said)
    return failed("it knows neither the capital of France nor 2 + 3", **said)


async def streams(subject: Subject) -> Verdict:
    """Judge that an answer comes in pieces and not in one lump."""
    answer = await subject.ask("Tell me a story about Python.", max_tokens=96, thinking=False)
    if answer.error:
        return failed(answer.error)
    pieces = len(answer.arrivals)
    if pieces < _LEAST_PIECES:
        return failed(f"it came in {pieces} pieces; {_LEAST_PIECES} are asked for", pieces=pieces)
    return passed(pieces=pieces)


async def thinking(subject: Subject) -> Verdict:
    """Judge that thoughts come apart from the answer, and not at all where they are switched off."""
    on = await subject.ask("What is 2 + 3?", max_tokens=1024, thinking=True)
    if on.error:
        return failed(on.error)
    if "<think" in on.said or "</think" in on.said:
        return failed(
            "thoughts stand in its answer: no parser of reasoning takes them out", on=shown(on.said)
        )
    if not on.thought:
        return skipped("it shows no thoughts when asked to think: it has none")
    if not on.said.strip() and on.finish != "length":
        return failed("it thinks and then says nothing", on=shown(on.thought))
    off = await subject.ask("What is 2 + 3?", max_tokens=1024, thinking=False)
    if off.error:
        return failed(off.error)
    if not off.said.strip():
        return failed("with thoughts switched off it says nothing", off=shown(off.thought))
    if off.thought:
        return passed(note="it thinks also when asked not to", on=shown(on.said), off=shown(off.said))
    return passed(on=shown(on.said), off=shown(off.said))


async def long_answer(subject: Subject) -> Verdict:
    """Judge an answer of up to 2,000 tokens: no circle, no line again and again, words that differ."""
    return await _long(subject, _ESSAY, _LONG, 0.30)


async def long_code(subject: Subject) -> Verdict:
    """Judge code of up to 4,096 tokens."""
    # Names of variables come again and again in good code.
    return await _long(subject, _CODE, 4_096, 0.15, needed=True)


async def long_thought(subject: Subject) -> Verdict:
    """Judge thoughts and an answer of up to 8,192 tokens together."""
    return await _long(subject, _PUZZLE, 8_192, None, needed=True, think=True)


async def _long(
    subject: Subject,
    question: str,
    tokens: int,
    variety: float | None,
    *,
    needed: bool = False,
    think: bool | None = False,
) -> Verdict:
    context = subject.context
    if needed and context is not None and context < tokens + _ROOM:
        return skipped(f"the context is {context:,} tokens, and the answer may have {tokens:,}")
    allowed = tokens if context is None else max(64, min(tokens, context - _ROOM))
    answer = await subject.ask(question, max_tokens=allowed, thinking=think)
    fault = answer.error or gates.fault(answer.text, least_variety=variety)
    if fault:
        return failed(fault, tokens=answer.tokens, said=shown(answer.text))
    if short := gates.too_short(answer.text, least_variety=variety):
        return skipped(short, tokens=answer.tokens, said=shown(answer.text))
    if think and not answer.said.strip() and answer.finish != "length":
        return failed("it thinks and then says nothing", tokens=answer.tokens)
    return passed(tokens=answer.tokens)


async def patches_live(subject: Subject) -> Verdict:
    """Judge that the patches of the plan are live, by ledger and probe."""
    return skipped("only a host knows its patches") if subject.patches is None else await subject.patches()


async def speculation(subject: Subject) -> Verdict:
    """Judge that speculation gains two tokens a step since the start, an answer of its own included."""
    if subject.acceptance is None:
        return skipped("the engine does not speculate")
    answer = await subject.ask(_ESSAY, max_tokens=256, thinking=False)
    if answer.error:
        return failed(answer.error)
    return await subject.acceptance(time.time())
