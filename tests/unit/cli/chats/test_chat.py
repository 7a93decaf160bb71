"""`sndr chat` against a host of canned answers."""

import json
from typing import Any

import pytest

from tests.unit.cli.fake_host import FakeHost
from tests.unit.cli.test_commands import ENGINE, Sndr, engines


def test_chat_streams_and_reports_its_speed(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/engines"] = engines(ENGINE)
    host.answers["POST /openai/v1/chat/completions"] = [
        {"choices": [{"delta": {"role": "assistant"}}]},
        {"choices": [{"delta": {"content": "Hel"}}]},
        {"choices": [{"delta": {"content": "lo"}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
        "[DONE]",
    ]
    code, out, err = sndr("chat", "Hi", "--system", "Be brief.", "--max-tokens", "9")
    assert (code, out) == (0, "Hello\n")
    assert "TTFT" in err
    assert "2 tokens" in err
    sent = host.received[-1][2]
    assert sent["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    assert (sent["model"], sent["max_tokens"]) == ("demo", 9)


def test_chat_says_that_an_answer_was_cut(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/engines"] = engines(ENGINE)
    host.answers["POST /openai/v1/chat/completions"] = [
        {"choices": [{"delta": {"content": "Hel"}, "finish_reason": "length"}]},
        "[DONE]",
    ]
    assert "cut off: --max-tokens 1" in sndr("chat", "Hi", "--max-tokens", "1")[2]
    assert "cut off: the context is full" in sndr("chat", "Hi")[2]


def test_chat_error_in_the_stream(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/engines"] = engines(ENGINE)
    host.answers["POST /openai/v1/chat/completions"] = [
        {"choices": [{"delta": {"content": "Hel"}}]},
        {"error": {"message": "The engine ended.", "code": "engine_crashed"}},
    ]
    code, out, err = sndr("chat", "Hi")
    assert code == 5
    assert out == "Hel"
    assert "The engine ended." in err


def test_chat_without_a_ready_model(host: FakeHost, sndr: Sndr) -> None:
    offer(host)
    host.answers["GET /v1/engines"] = engines({**ENGINE, "state": "starting"})
    assert sndr("chat", "Hi")[0] == 4


def offer(host: FakeHost, *models: dict[str, Any]) -> None:
    host.answers["GET /v1/engines"] = engines()
    listed = [{"context": 4096, "chat": True, **model} for model in models]
    host.answers["GET /v1/endpoint/models"] = (200, {"seq": 1, "models": listed})
    host.answers["POST /openai/v1/chat/completions"] = [{"choices": [{"delta": {"content": "a"}}]}, "[DONE]"]


def test_chat_without_a_name_asks_the_only_model_that_is_offered(host: FakeHost, sndr: Sndr) -> None:
    offer(host, {"id": "embeds", "chat": False}, {"id": "coder"})
    assert sndr("chat", "Hi")[:2] == (0, "a\n")
    assert host.received[-1][2]["model"] == "coder"
    offer(host, {"id": "waiting", "on_demand": True})
    assert "the request loads waiting" in sndr("chat", "Hi")[2]
    offer(host, {"id": "coder"}, {"id": "waiting", "on_demand": True})
    code, _, err = sndr("chat", "Hi")
    assert (code, "several models are offered: coder, waiting" in err) == (2, True)


def test_chat_without_a_name_never_leaves_the_machine(host: FakeHost, sndr: Sndr) -> None:
    offer(host, {"id": "far", "provider": "api.example.org"})
    code, _, err = sndr("chat", "Hi")
    assert (code, "api.example.org" in err, "sndr chat --model far" in err) == (2, True, True)
    assert all("/openai/" not in str(one) for one in host.received)
    assert sndr("chat", "Hi", "--model", "far")[0] == 0


def test_raw_chat_completes_text(host: FakeHost, sndr: Sndr) -> None:
    host.answers["POST /openai/v1/completions"] = [{"choices": [{"text": " b"}]}, "[DONE]"]
    code, out, _ = sndr("chat", "a", "--raw", "--model", "demo", "--json")
    assert code == 0
    assert json.loads(out)["text"] == " b"
    assert host.received[-1][2]["prompt"] == "a"


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_message_is_not_sent(host: FakeHost, sndr: Sndr, text: str) -> None:
    code, _, err = sndr("chat", "--model", "demo", text)
    assert code == 2
    assert "The message is empty" in err
    assert not [request for request, _, _ in host.received if request.startswith("POST")]


def test_a_conversation_greets_and_knows_its_commands(
    host: FakeHost, sndr: Sndr, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(host, {"id": "coder"})
    typed = iter(
        ["/help", "Hi", "/system Be brief.", "/system", "Hi again", "/new", "/nosuch", " /x", "/exit", "no"]
    )
    monkeypatch.setattr("builtins.input", lambda _prompt: next(typed))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    code, _, err = sndr("chat")
    assert code == 0
    assert err.startswith("coder answers. Ctrl+D or /exit ends the chat")
    assert "/system TEXT" in err
    assert "There is no /nosuch" in err
    assert "(Be brief.)" in err
    asked = [
        body["messages"] for call, _, body in host.received if call == "POST /openai/v1/chat/completions"
    ]
    system = {"role": "system", "content": "Be brief."}
    assert asked == [
        [{"role": "user", "content": "Hi"}],
        [system, {"role": "user", "content": "Hi again"}],
        [system, {"role": "user", "content": " /x"}],
    ], "no command goes to the model"
    assert next(typed) == "no"
