"""Tools in groups, as Codex sends them, on an engine that knows none."""

import json
from typing import Any

import pytest

from engine_host.core import sse
from engine_host.gateway.responses.answer import Frame
from engine_host.gateway.responses.events import ResponseEvents
from engine_host.gateway.responses.namespaces import groups
from engine_host.gateway.responses.request import repaired

READ = {"type": "function", "name": "read", "parameters": {}}
GROUP = {"type": "namespace", "name": "files", "description": "d", "tools": [READ, {"type": "web_search"}, 7]}
REQUEST: dict[str, Any] = {"model": "m", "input": "hi", "tools": [READ, GROUP]}


def test_each_tool_of_a_group_is_a_tool_by_itself() -> None:
    body = repaired(REQUEST, for_llamacpp=True)
    assert [tool["name"] for tool in body["tools"]] == ["read", "files__read"]
    assert repaired(REQUEST, for_llamacpp=False)["tools"] == REQUEST["tools"]
    choice = {"type": "function", "namespace": "files", "name": "read"}
    named = repaired({**REQUEST, "tool_choice": choice}, for_llamacpp=True)
    assert [tool["name"] for tool in named["tools"]] == ["files__read"]
    call = {"type": "function_call", "call_id": "1", "namespace": "files", "name": "read", "arguments": "{}"}
    (said,) = repaired({**REQUEST, "input": [call]}, for_llamacpp=True)["input"]
    assert said == {"type": "function_call", "call_id": "1", "name": "files__read", "arguments": "{}"}


def test_a_call_comes_back_with_its_group() -> None:
    item = {"type": "function_call", "id": "fc_1", "call_id": "1", "name": "files__read", "arguments": "{}"}
    response = {"id": "resp_1", "output": [item]}
    stream = b"".join(
        sse.frame_of(json.dumps({"type": kind, **fields}).encode(), kind)
        for kind, fields in (
            ("response.output_item.added", {"item": item}),
            ("response.output_item.done", {"item": item}),
            ("response.completed", {"response": response}),
        )
    )
    repair = ResponseEvents(Frame("r", "m", 1, REQUEST))
    told = [json.loads(one.data) for one in sse.messages([repair.feed(stream)])]
    given = [event["item"] for event in told if "item" in event] + told[-1]["response"]["output"]
    assert len(given) == 3
    assert all((one["namespace"], one["name"]) == ("files", "read") for one in given)
    assert next(event["name"] for event in told if event["type"].endswith("arguments.done")) == "read"


@pytest.mark.parametrize(
    "tools", [7, [7], [{"type": "namespace"}], [{"type": "namespace", "name": "g", "tools": 7}],
              [{"type": "namespace", "name": "g", "tools": [{"type": "function", "name": []}]}],
              [{"type": ["namespace"], "name": {}}]],
)  # fmt: skip
def test_groups_of_any_form(tools: Any) -> None:
    assert groups(tools) == {}
    assert repaired({"input": "x", "tools": tools}, for_llamacpp=True)
