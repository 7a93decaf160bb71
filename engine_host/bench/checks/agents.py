"""The burdens of agents: long results of tools, long instructions, many tools, many turns."""

from typing import Any

from engine_host.bench.checks import tools
from engine_host.bench.checks.subject import Subject, Verdict, failed, passed, shown, skipped
from engine_host.bench.lab import gates
from engine_host.bench.lab.workloads import salt
from engine_host.protocol.base import JsonValue

_RESULT_LINES = 1_200
_RESULT_TOKENS = 25_000
_RULE_LINES = 260
_RULE_TOKENS = 5_000
_ANSWER = 512
_SUMS = ((17, 25), (3, 9), (40, 2), (11, 30), (8, 8), (5, 60))
_MORE_TOOLS = (
    tools.tool("read_file", "Read a file of the project", path="string"),
    tools.tool("write_file", "Write a file of the project", path="string", content="string"),
    tools.tool("list_files", "List the files of a folder", path="string"),
    tools.tool("search_text", "Search the project for a text", pattern="string"),
    tools.tool("run_command", "Run a command in a shell", command="string"),
    tools.tool("run_tests", "Run the tests of a file", path="string"),
    tools.tool("open_page", "Open a page of the web", url="string"),
    tools.tool("send_mail", "Send a mail", to="string", text="string"),
)


async def tool_result(subject: Subject) -> Verdict:
    """Judge that a tool's result of some 25,000 tokens is answered with sense."""
    if (why := _too_long(subject, _RESULT_TOKENS)) is not None:
        return why
    lines = [f"{n:05d} INFO job {n * 7919 % 10007} ended after {n % 97} ms" for n in range(_RESULT_LINES)]
    messages = [
        {"role": "user", "content": f"[{salt(subject.seed, 'result', 0)}] Read app.log and say what it is."},
        _call("read_file", '{"path": "app.log"}'),
        {"role": "tool", "tool_call_id": "call_1", "content": "\n".join(lines)},
    ]
    answer = await subject.ask(messages, max_tokens=_ANSWER, tools=_MORE_TOOLS, thinking=False)
    fault = answer.error or ("" if answer.calls else gates.fault(answer.text, least_variety=None))
    seen: dict[str, JsonValue] = {"prompt_tokens": answer.prompt_tokens, "said": shown(answer.said)}
    return failed(fault, **seen) if fault else passed(**seen)


async def many_tools(subject: Subject) -> Verdict:
    """Judge the right call among ten tools, behind instructions of some 5,000 tokens."""
    if (why := _too_long(subject, _RULE_TOKENS)) is not None:
        return why
    if await subject.takes_no_tools():
        return skipped("the model's template knows no tools")
    rules = [f"Rule {n}: keep files of kind {n * 31 % 97} in folder {n % 13}." for n in range(_RULE_LINES)]
    messages = [
        {"role": "system", "content": "\n".join([f"[{salt(subject.seed, 'rules', 0)}]", *rules])},
        {"role": "user", "content": tools.CASES[0].question},
    ]
    every = (*_MORE_TOOLS, *tools.TOOLS)
    answer = await subject.ask(messages, max_tokens=_ANSWER, tools=every, thinking=False)
    fault = tools.wrong(tools.CASES[0], answer)
    seen: dict[str, JsonValue] = {"prompt_tokens": answer.prompt_tokens, "said": shown(answer.said)}
    return failed(fault, **seen) if fault else passed(**seen)


async def tool_turns(subject: Subject) -> Verdict:
    """Judge a conversation of six turns: each has its call, and each result its answer in words."""
    if await subject.takes_no_tools():
        return skipped("the model's template knows no tools")
    messages: list[dict[str, Any]] = []
    for turn, (a, b) in enumerate(_SUMS, 1):
        case = tools.Case(f"Add {a} and {b}.", "add_numbers", {"a": a, "b": b})
        messages.append({"role": "user", "content": case.question})
        answer = await subject.ask(messages, max_tokens=_ANSWER, tools=tools.TOOLS, thinking=False)
        if fault := tools.wrong(case, answer):
            return failed(f"turn {turn}: {fault}", said=shown(answer.said))
        messages += [
            _call(answer.calls[0].name, answer.calls[0].arguments),
            {"role": "tool", "tool_call_id": "call_1", "content": f'{{"sum": {a + b}}}'},
        ]
        answer = await subject.ask(messages, max_tokens=_ANSWER, tools=tools.TOOLS, thinking=False)
        fault = answer.error or ("" if answer.said.strip() else "it says nothing on the tool's result")
        if fault:
            return failed(f"turn {turn}: {fault}")
        messages.append({"role": "assistant", "content": answer.said})
    return passed(turns=len(_SUMS))


def _call(name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
    }


def _too_long(subject: Subject, tokens: int) -> Verdict | None:
    if subject.context is None or subject.context >= tokens + 2 * _ANSWER:
        return None
    return skipped(f"the context is {subject.context:,} tokens, and this takes {tokens:,}")
