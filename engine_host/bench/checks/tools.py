"""Calls of tools: name, arguments and JSON, streamed and not, and a question that needs none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine_host.bench.checks.subject import Subject, Verdict, failed, passed, shown, skipped
from engine_host.bench.lab.load import Answered, Called
from engine_host.core.outside import json_text
from engine_host.protocol.base import JsonValue

_TOKENS = 2_048
_REFUSED = range(400, 500)
_LEAKS = ("<tool_call", "</tool_call", "<function=", "<|tool", "[TOOL_CALLS]", "<|python_tag|>")


def tool(name: str, about: str, **kinds: str) -> dict[str, Any]:
    """Return a tool whose arguments are all required, each with its JSON type."""
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": about,
            "parameters": {
                "type": "object",
                "properties": {key: {"type": kind} for key, kind in kinds.items()},
                "required": list(kinds),
            },
        },
    }


WEATHER = tool("get_weather", "Get the current weather of a city", city="string")
SUM = tool("add_numbers", "Add two whole numbers", a="integer", b="integer")
TOOLS = (WEATHER, SUM)


@dataclass(frozen=True)
class Case:
    """A question and the call that it needs; without a name none."""

    question: str
    name: str = ""
    arguments: Mapping[str, JsonValue] | None = None


CASES = (
    Case("What is the weather in Oslo?", "get_weather", {"city": "Oslo"}),
    Case("Add 17 and 25.", "add_numbers", {"a": 17, "b": 25}),
    Case("Say hello."),
)


def wrong(case: Case, answer: Answered) -> str:
    """Return what is wrong with an answer to a case; empty where nothing is."""
    if answer.error:
        return answer.error
    leak = next((sign for sign in _LEAKS if sign in answer.said), "")
    if leak:
        return f"{leak} stands in its text, where nobody reads it as a call"
    if not case.name:
        if answer.calls:
            return f"it calls {answer.calls[0].name or 'a tool'}, and no tool is needed"
        return "" if answer.said.strip() else "it neither calls a tool nor says anything"
    if not answer.calls:
        return "it calls no tool"
    if len(answer.calls) > 1:
        return f"it calls {len(answer.calls)} tools instead of one"
    return _wrong_call(case, answer.calls[0])


def _wrong_call(case: Case, call: Called) -> str:
    if call.name != case.name:
        return f"it calls {call.name or 'a tool without a name'} instead of {case.name}"
    try:
        given = json_text.parse_object(call.arguments)
    except ValueError as error:
        return f"its arguments are no JSON object: {error}"
    wanted = case.arguments or {}
    if given.keys() != wanted.keys():
        return f"its arguments are named {', '.join(sorted(given)) or 'nothing'}"
    for name, value in wanted.items():
        same = (
            isinstance(given[name], str) and value.casefold() in given[name].casefold()
            if isinstance(value, str)
            else given[name] == value and not isinstance(given[name], bool)
        )
        if not same:
            return f"{name} is {given[name]!r} instead of {value!r}"
    return ""


async def tool_calls(
    subject: Subject, *, streamed: bool, thinking: bool | None = None, tools: Sequence[Any] = TOOLS
) -> Verdict:
    """Judge the calls of every case; skipped where the engine or its model takes no tools."""
    if await subject.takes_no_tools():
        return skipped("the model's template knows no tools")
    seen: dict[str, JsonValue] = {}
    faults: list[str] = []
    called = 0
    # Thoughts take their share; the tools have to fit as well.
    most = _TOKENS if subject.context is None else max(64, min(_TOKENS, subject.context // 2))
    for case in CASES:
        answer = await subject.ask(
            case.question, max_tokens=most, tools=tools, thinking=thinking, streamed=streamed
        )
        if answer.status in _REFUSED:
            return skipped(f"the engine takes no tools: {answer.error}")
        fault = wrong(case, answer)
        called += bool(answer.calls) or any(sign in answer.said for sign in _LEAKS)
        told = "; ".join(f"{one.name} {one.arguments}" for one in answer.calls)
        seen[case.question] = shown(fault or told or answer.said)
        if fault:
            faults.append(f"“{case.question}”: {fault}")
    if not called and not subject.strict:
        return skipped("it calls no tool, and nobody knows whether it can", **seen)
    return failed("; ".join(faults), **seen) if faults else passed(**seen)


async def tool_call(subject: Subject) -> Verdict:
    """Judge calls in whole answers."""
    return await tool_calls(subject, streamed=False)


async def tool_call_streamed(subject: Subject) -> Verdict:
    """Judge calls in streamed answers, thoughts on, and off where the model has any."""
    on = await tool_calls(subject, streamed=True, thinking=True)
    if on.outcome is not passed().outcome:
        return on
    off = await tool_calls(subject, streamed=True, thinking=False)
    return off if off.outcome is not on.outcome else passed(on=dict(on.evidence), off=dict(off.evidence))


async def tool_gate(subject: Subject) -> Verdict:
    """Judge calls for a speed that is published: whole answers first, then streamed ones."""
    whole = await tool_calls(subject, streamed=False)
    if whole.outcome is not passed().outcome:
        return whole
    return await tool_calls(subject, streamed=True)
