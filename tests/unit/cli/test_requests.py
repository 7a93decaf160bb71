"""`sndr requests` with a host of canned answers."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.fake_host import FakeHost

Sndr = Callable[..., tuple[int, str, str]]
DONE: dict[str, Any] = {
    "id": "req_aaaaaaaaaaaaaaaaaaaaaaaa",
    "engine": "engine-1",
    "model": "demo",
    "route": "/v1/messages",
    "client": "claude-cli/2.1",
    "client_name": "Claude Code 2.1",
    "conversation": "c0ffee",
    "state": "done",
    "created_at": 1000.0,
    "ttft": 0.25,
    "prompt_tokens": 1200,
    "cached_tokens": 0,
}
WAITING: dict[str, Any] = {
    **DONE,
    "id": "req_abbbbbbbbbbbbbbbbbbbbbbb",
    "client_name": "\x1b[2Jevil",
    "state": "waiting",
    "place": 3,
    "ttft": None,
    "prompt_tokens": None,
    "cached_tokens": None,
}
TURN: dict[str, Any] = {
    "request": DONE["id"],
    "at": 1000.0,
    "engine": "engine-1",
    "model": "demo",
    "parts": 3,
    "prompt_tokens": 1200,
    "cached_tokens": 0,
    "read_again": 1000,
    "lost_seconds": 1.5,
    "checkpoint": 0,
    "checkpoint_again": 200,
    "reason": "message_changed",
    "diverged": {
        "part": "message", "role": "user", "number": 2, "of": 3, "bytes_kept": 5, "bytes_before": 50,
    },
}  # fmt: skip


@pytest.fixture(autouse=True)
def listed(host: FakeHost) -> None:
    host.answers["GET /v1/requests"] = (200, {"seq": 1, "requests": [WAITING, DONE]})


@pytest.mark.parametrize("words", [["requests"], ["requests", "list"]])
def test_requests_are_listed_with_the_newest_last(host: FakeHost, sndr: Sndr, words: list[str]) -> None:
    code, out, _ = sndr(*words)
    heading, first, second = out.splitlines()
    assert code == 0
    assert heading.startswith("id ")
    assert "Claude Code 2.1" in first
    assert "1,200  0  " in first
    assert "queued, 3." in second
    assert "\x1b" not in out
    assert " - " in second, "what was not measured is no 0"


def test_pieces_are_named_so_where_no_tokens_are_told(host: FakeHost, sndr: Sndr) -> None:
    live = {**DONE, "state": "decode", "pieces": 37, "piece_rate": 12.34}
    counted = {**DONE, "state": "decode", "generated_tokens": 1204, "decode_rate": 31.0}
    host.answers["GET /v1/requests"] = (200, {"seq": 1, "requests": [live, counted]})
    host.answers[f"GET /v1/requests/{DONE['id']}"] = (200, {"request": live, "turn": None})
    code, out, _ = sndr("requests")
    _, first, second = out.splitlines()
    assert code == 0
    assert first.split()[-7:-2] == ["ms", "31.0", "1,200", "0", "1,204"]
    assert second.split()[-8:-2] == ["12.3", "pieces/s", "1,200", "0", "37", "pieces"]
    _, out, _ = sndr("requests", "show", DONE["id"])
    assert "decode                  12.3 pieces/s" in out
    assert "tokens out              not measured; 37 pieces came" in out


def test_one_is_shown_and_cancelled_by_the_beginning_of_its_id(host: FakeHost, sndr: Sndr) -> None:
    host.answers[f"GET /v1/requests/{DONE['id']}"] = (200, {"request": DONE, "turn": TURN})
    host.answers[f"DELETE /v1/requests/{WAITING['id']}"] = (200, {**WAITING, "state": "cancelled"})
    code, out, _ = sndr("requests", "show", "req_aa")
    assert code == 0
    assert "a message was edited at message 2 (user)" in out
    assert "no state of it was kept, so that 200 tokens were computed again" in out
    assert "hit ended at            no kept state" in out
    assert "again for it            200 tokens" in out
    assert "decode                  not measured" in out
    assert "of them cached          0" in out
    code, out, _ = sndr("requests", "cancel", "req_ab")
    assert (code, out) == (0, f"{WAITING['id']}: cancelled.\n")
    code, out, err = sndr("requests", "show", "req_")
    assert (code, out) == (6, "")
    assert "2 requests begin with req_" in err


def test_the_prefix_lens_says_where_prompts_part(host: FakeHost, sndr: Sndr) -> None:
    conversation = {
        "id": "c0ffee1234", "label": "0f3a9c1e", "source": "x-session-id", "client": "Claude Code 2.1",
        "started_at": 1.0, "last_at": 2.0, "count": 7, "measured": 1, "prompt_tokens": 1200,
        "lost_seconds": 1.5, "turns": [TURN],
    }  # fmt: skip
    host.answers["GET /v1/conversations"] = (200, {"seq": 1, "conversations": [conversation]})
    older = {**TURN, "request": "req_older"}
    whole = {**conversation, "turns": [older, TURN]}
    host.answers["GET /v1/conversations/c0ffee1234"] = (200, whole)
    assert "req_older" not in sndr("requests", "prefix")[1]
    for words in (["requests", "prefix", "-n", "50"], ["requests", "prefix", "c0ff"]):
        assert "req_older" in sndr(*words)[1]
    for words in (["requests", "prefix"], ["requests", "prefix", "0f3a9c1e-1111"]):
        code, out, _ = sndr(*words)
        assert code == 0
        assert "7 turns, 0 of 1,200 tokens reused, 1.5 s lost" in out
        assert "a message was edited at message 2 (user)" in out
    code, out, _ = sndr("requests", "prefix", "--json")
    assert json.loads(out)["conversations"][0]["turns"][0]["reason"] == "message_changed"
    assert sndr("requests", "prefix", "nothing")[0] == 4


def test_empty_lists_teach(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/requests"] = (200, {"seq": 1, "requests": []})
    host.answers["GET /v1/conversations"] = (200, {"seq": 1, "conversations": []})
    assert "appears here" in sndr("requests")[1]
    assert "turn of one" in sndr("requests", "prefix")[1]


KEPT = {"text": '{"a": "\x1b[2J"}', "bytes": 12}
CAPTURED: dict[str, Any] = {
    "path": "/v1/messages", "headers": [["user-agent", "\x1b[1mx"]], "asked": KEPT,
    "engine_path": "/v1/chat/completions", "translated": KEPT, "difference": "-a\n+b", "engine_answer": KEPT,
    "status": 200, "answer": KEPT, "text": "Hello.", "curl": "curl x",
}  # fmt: skip
STATE = {"until": None, "requests": 0, "bytes": 0, "most_requests": 200, "most_bytes": 67108864}


def test_capture_is_switched_on_and_off(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/captures"] = (200, STATE)
    host.answers["PUT /v1/captures"] = (200, {**STATE, "until": 1000.0})
    host.answers["DELETE /v1/captures"] = (200, STATE)
    assert "Off: texts of requests are not kept" in sndr("requests", "capture")[1]
    assert "never on disk" in sndr("requests", "capture", "--minutes", "5")[1]
    assert host.received[-1][2] == {"minutes": 5}
    assert sndr("requests", "capture", "--off")[0] == 0
    assert sndr("requests", "capture", "--off", "--minutes", "5")[0] == 2


def test_what_was_captured_is_shown_exported_and_a_command(
    host: FakeHost, sndr: Sndr, tmp_path: Path
) -> None:
    whole = {"request": {**DONE, "captured": True}, "captured": CAPTURED}
    host.answers[f"GET /v1/requests/{DONE['id']}"] = (200, whole)
    host.answers[f"GET /v1/requests/{WAITING['id']}"] = (200, {"request": WAITING})
    host.answers["GET /v1/requests"] = (200, {"seq": 1, "requests": [WAITING, {**DONE, "captured": True}]})
    code, out, _ = sndr("requests", "show", "req_aa")
    assert code == 0
    assert "Hello." in out
    assert "\n-a\n+b\n" in out
    assert "\x1b" not in out
    assert sndr("requests", "curl", "req_aa")[1] == "curl x\n"
    file = tmp_path / "one.json"
    assert sndr("requests", "export", "req_aa", "-o", str(file))[0] == 0
    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_text())["requests"][0]["captured"]["text"] == "Hello."
    code, _, err = sndr("requests", "export", "--all", "-o", str(file))
    assert (code, "there already" in err) == (6, True)
    assert sndr("requests", "export", "--all", "--replace", "-o", str(file))[0] == 0
    code, _, err = sndr("requests", "curl", "req_ab")
    assert (code, "sndr requests capture --minutes 15" in err) == (6, True)
