"""What no model can be asked is refused in each dialect, in the form of errors of who asks."""

from typing import Any

import pytest

from tests.unit.gateway.asking import CHAT, HELLO, ask

USER = {"role": "user", "content": "a"}
ASKING: dict[str, dict[str, Any]] = {
    CHAT: {"messages": [USER]},
    "/v1/completions": {"prompt": "a"},
    "/v1/responses": {"input": "a"},
    "/v1/messages": {"messages": [USER], "max_tokens": 5},
    "/completion": {"prompt": "a"},
}
"""A request of each dialect that has these fields at its top."""


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        *(
            (path, {**body, name: value}, name)
            for path, body in ASKING.items()
            for name, value in (
                ("temperature", -3), ("temperature", 2.1), ("top_p", -0.1), ("top_p", 1.5), ("n", 0),
                ("n", 129), ("presence_penalty", 2.5), ("frequency_penalty", -2.5), ("max_tokens", -2),
                ("max_tokens", 0), ("max_completion_tokens", 0), ("max_output_tokens", -5),
                ("top_logprobs", -1),
            )
        ),
        ("/api/chat", {"messages": [USER], "options": {"temperature": -3}}, "options.temperature"),
        ("/api/generate", {"prompt": "a", "options": {"top_p": 2}}, "options.top_p"),
    ],
)  # fmt: skip
def test_what_is_out_of_its_bounds_is_refused_in_the_callers_form(
    world: Any, path: str, body: dict[str, Any], param: str
) -> None:
    answer = ask(world, "POST", path, json=body)
    assert answer.status_code == 400
    told = answer.json()["error"]
    said = told if isinstance(told, str) else told["message"]
    assert f"{param} must be " in said
    if path == "/v1/messages":
        assert (answer.json()["type"], told["type"]) == ("error", "invalid_request_error")
    elif path.startswith("/api/"):
        assert answer.json()["code"] == "invalid_value"
    else:
        assert (told["param"], told["code"]) == (param, "invalid_value")


def test_the_bounds_themselves_are_within(world: Any) -> None:
    for one in (
        {"temperature": 0, "top_p": 0, "n": 1, "presence_penalty": -2, "frequency_penalty": -2},
        {"temperature": 2, "top_p": 1, "presence_penalty": 2, "frequency_penalty": 2, "max_tokens": 1},
        # No limit, as LM Studio's clients say it.
        {"max_tokens": -1},
        {"max_completion_tokens": -1},
    ):
        assert ask(world, "POST", CHAT, json={**HELLO, **one}).status_code == 200
    # Only the prompt is scored: what harnesses ask.
    scored = {"prompt": "a", "echo": True, "max_tokens": 0, "logprobs": 1}
    assert "max_tokens" not in ask(world, "POST", "/v1/completions", json=scored).text


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        *(
            (path, {**body, "stop": stop}, "stop")
            for path, body in ASKING.items()
            for stop in ("", ["a", ""])
        ),
        ("/v1/messages", {**ASKING["/v1/messages"], "stop_sequences": [""]}, "stop_sequences"),
        ("/api/chat", {"messages": [USER], "options": {"stop": [""]}}, "options.stop"),
        ("/api/generate", {"prompt": "a", "options": {"stop": ""}}, "options.stop"),
    ],
)
def test_an_empty_text_ends_no_answer_before_its_first_word(
    world: Any, path: str, body: dict[str, Any], param: str
) -> None:
    answer = ask(world, "POST", path, json={"model": "m", **body})
    assert answer.status_code == 400
    assert f"{param} holds an empty text" in answer.text


def test_the_best_of_several_is_refused_where_the_engine_would_leave_it_out(world: Any) -> None:
    for more in ({"best_of": 3}, {"best_of": 3, "n": 2}):
        answer = ask(world, "POST", "/v1/completions", json={"model": "m", "prompt": "a", **more})
        error = answer.json()["error"]
        assert (answer.status_code, error["code"], error["param"]) == (400, "unsupported", "best_of")
    same = {"model": "m", "prompt": "a", "best_of": 2, "n": 2}
    assert ask(world, "POST", "/v1/completions", json=same).status_code == 200
