"""The form of an answer, in the words of both engines."""

import json
from typing import Any

import pytest

from engine_host.gateway.chat.structured import in_words_of
from engine_host.gateway.directory import Target
from engine_host.gateway.error_answers import EndpointError
from engine_host.gateway.routes.calls import chat
from engine_host.gateway.routes.rows import Asked

CHAT: dict[str, Any] = {"messages": []}
TEXT: dict[str, Any] = {"prompt": "a"}
SCHEMA = {"type": "boolean"}
FORMAT = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}


@pytest.mark.parametrize("body", [CHAT, TEXT])
@pytest.mark.parametrize(
    "own",
    [{}, {"json_schema": SCHEMA}, {"grammar": "root ::= [0-9]"}, {"guided_json": None}],
)
def test_what_llamacpp_reads_is_the_clients_own(body: dict[str, Any], own: dict[str, Any]) -> None:
    asked = {**body, **own}
    assert in_words_of(asked, for_llamacpp=True) is asked


@pytest.mark.parametrize(
    "own", [{}, {"structured_outputs": {"regex": "a+"}}, {"response_format": FORMAT}, {"grammar": None}]
)
def test_what_vllm_reads_is_the_clients_own(own: dict[str, Any]) -> None:
    asked = {**CHAT, **own}
    assert in_words_of(asked, for_llamacpp=False) is asked


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"guided_json": SCHEMA}, {"response_format": FORMAT}),
        ({"structured_outputs": {"json": '{"type": "boolean"}'}}, {"response_format": FORMAT}),
        ({"guided_choice": ["yes", 'n"o\\']}, {"grammar": r'root ::= "yes" | "n\"o\\"'}),
        ({"structured_outputs": {"choice": ["\u00e9\n"]}}, {"grammar": r'root ::= "\U000000E9\U0000000A"'}),
        ({"guided_grammar": "root ::= [0-9]"}, {"grammar": "root ::= [0-9]"}),
        ({"structured_outputs": {"disable_any_whitespace": True}}, {}),
    ],
)
def test_vllms_words_become_those_of_llamacpp(asked: dict[str, Any], told: dict[str, Any]) -> None:
    assert in_words_of({**CHAT, **asked}, for_llamacpp=True) == {**CHAT, **told}


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"guided_json": SCHEMA}, SCHEMA),
        ({"response_format": FORMAT}, SCHEMA),
        ({"response_format": {"type": "json_object"}}, {"type": "object"}),
        ({"response_format": {"type": "json_object", "schema": SCHEMA}}, SCHEMA),
        ({"structured_outputs": {"json_object": True}}, {"type": "object"}),
    ],
)
def test_a_completion_of_llamacpp_has_a_field_of_its_own(asked: dict[str, Any], told: Any) -> None:
    assert in_words_of({**TEXT, **asked}, for_llamacpp=True) == {**TEXT, "json_schema": told}


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"grammar": "root ::= [0-9]"}, {"grammar": "root ::= [0-9]"}),
        ({"json_schema": SCHEMA}, {"json": SCHEMA}),
        ({"guided_regex": "a+"}, {"regex": "a+"}),
        ({"guided_choice": ["a"], "structured_outputs": {"choice": ["b"]}}, {"choice": ["b"]}),
    ],
)
def test_llamacpps_and_old_words_become_those_of_vllm(asked: dict[str, Any], told: dict[str, Any]) -> None:
    assert in_words_of({**CHAT, **asked}, for_llamacpp=False) == {**CHAT, "structured_outputs": told}


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"guided_regex": "a+"}, "unsupported"),
        ({"structured_outputs": {"structural_tag": "{}"}}, "unsupported"),
        ({"structured_outputs": "regex"}, "invalid_type"),
        ({"structured_outputs": {"choice": []}}, "invalid_type"),
        ({"guided_choice": [7]}, "invalid_type"),
        ({"guided_json": "{"}, "invalid_value"),
        ({"guided_json": [1]}, "invalid_type"),
        ({"structured_outputs": {"grammar": 5}}, "invalid_type"),
    ],
)
def test_a_form_that_cannot_be_kept_is_refused(asked: dict[str, Any], code: str) -> None:
    with pytest.raises(EndpointError) as refused:
        in_words_of({**CHAT, **asked}, for_llamacpp=True)
    assert (refused.value.status, refused.value.code) == (400, code)
    assert refused.value.param == "structured_outputs"


@pytest.mark.parametrize("for_llamacpp", [True, False])
@pytest.mark.parametrize("body", [CHAT, TEXT])
@pytest.mark.parametrize(
    "wrong",
    [
        {"json_schema": 5},
        {"grammar": ["root"]},
        {"response_format": {"type": "json_schema"}},
        {"response_format": {"type": "json_schema", "json_schema": 7}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": "y"}}},
    ],
)
def test_a_form_that_is_none_is_not_left_out(
    wrong: dict[str, Any], body: dict[str, Any], for_llamacpp: bool
) -> None:
    with pytest.raises(EndpointError) as refused:
        in_words_of({**body, **wrong}, for_llamacpp=for_llamacpp)
    assert (refused.value.status, refused.value.param) == (400, next(iter(wrong)))


@pytest.mark.parametrize(
    "form",
    [
        {"response_format": FORMAT},
        {"guided_json": SCHEMA},
        {"structured_outputs": {"json": SCHEMA}},
        {"structured_outputs": {"json_object": True}},
    ],
)
def test_a_call_that_has_to_be_made_has_no_other_form(form: dict[str, Any]) -> None:
    target = Target("e1", "m", 2, 4096, 0.0, socket="unused", native_infill=True)
    tools = [{"type": "function", "function": {"name": "weather"}}]
    body = {"model": "m", "messages": [], "tools": tools, "tool_choice": "required", **form}
    first = chat(Asked("/v1/chat/completions", json.dumps(body).encode(), body, target, "req_1"))
    assert not {"response_format", *form} & set(json.loads(first.body))


TOOLS: dict[str, Any] = {"tools": [{"type": "function", "function": {"name": "f"}}]}


def test_llamacpps_own_schema_beside_tools_is_seen_by_what_tells_both_apart() -> None:
    asked = {**CHAT, **TOOLS, "json_schema": SCHEMA}
    assert in_words_of(asked, for_llamacpp=True) == {**CHAT, **TOOLS, "response_format": FORMAT}


def test_llamacpps_own_grammar_beside_tools_is_asked_for_alone_after_the_tools() -> None:
    call = chat(asked_of({**CHAT, **TOOLS, "grammar": "root ::= [0-9]"}))
    assert call.otherwise is not None
    assert "grammar" not in json.loads(call.otherwise.body)
    assert call.otherwise.tentative


@pytest.mark.parametrize("form", [{"json_schema": SCHEMA}, {"grammar": "root ::= [0-9]"}])
def test_llamacpps_own_form_is_left_out_where_a_call_has_to_be_made(form: dict[str, Any]) -> None:
    call = chat(asked_of({**CHAT, **TOOLS, **form, "tool_choice": "required"}))
    sent = json.loads(call.body)
    assert not {"json_schema", "grammar", "response_format"} & set(sent)


@pytest.mark.parametrize("form", [{"type": "foo"}, {}, {"type": None}])
def test_a_completion_in_a_form_that_nobody_has_is_refused(form: dict[str, Any]) -> None:
    with pytest.raises(EndpointError) as raised:
        in_words_of({**TEXT, "response_format": form}, for_llamacpp=True)
    assert (raised.value.status, raised.value.param) == (400, "response_format")


def asked_of(body: dict[str, Any]) -> Asked:
    """Return a chat that a llama.cpp engine is asked for."""
    target = Target("e", "m", 1, 4096, 0.0, socket="/s", native_infill=True, tools=True)
    return Asked("/v1/chat/completions", json.dumps(body).encode(), body, target, "req_1")
