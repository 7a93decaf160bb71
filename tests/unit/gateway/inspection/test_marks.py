"""Where two prompts part: by hashes of their parts in order."""

from typing import Any

import pytest

from engine_host.client.request_words import turn_text
from engine_host.gateway.inspection.comparison import Turn, compared, diverged
from engine_host.gateway.inspection.conversation import named_conversation
from engine_host.gateway.inspection.marks import marks_of
from engine_host.protocol.endpoint.requests import PrefixReason, PromptPart

SALT = b"salt"
SYSTEM = {"role": "system", "content": "Be brief."}
HI = {"role": "user", "content": "hi"}
HELLO = {"role": "assistant", "content": "hello"}
MORE = {"role": "user", "content": "more"}
TOOL = {"type": "function", "function": {"name": "a"}}


def chat(*messages: Any, **more: Any) -> Any:
    return marks_of({"messages": list(messages), **more}, SALT)


def test_a_conversation_that_goes_on_parts_nowhere() -> None:
    assert diverged(chat(SYSTEM, HI), chat(SYSTEM, HI, HELLO, MORE)) is None
    assert diverged(chat(SYSTEM, HI, tools=[TOOL]), chat(SYSTEM, HI, HELLO, tools=[TOOL])) is None


@pytest.mark.parametrize(
    ("now", "reason", "part", "number"),
    [
        (chat({**SYSTEM, "content": "Now 12:01"}, HI, HELLO, MORE), "system_changed", "system", 1),
        (chat(HI, HELLO, MORE), "system_changed", "system", 1),
        (chat(SYSTEM, HI, {**HELLO, "content": "bye"}, MORE), "message_changed", "message", 3),
        (chat(SYSTEM, HI, MORE), "messages_removed", "message", 3),
        (chat(SYSTEM), "messages_removed", "message", 2),
        (chat(SYSTEM, HI, MORE | {"content": "x"}, HELLO, MORE), "message_inserted", "message", 3),
        (chat(SYSTEM, HI, HELLO, MORE, tools=[TOOL]), "tools_changed", "system", 1),
    ],
)
def test_the_place_is_named(now: Any, reason: str, part: str, number: int) -> None:
    found = diverged(chat(SYSTEM, HI, HELLO, MORE), now)
    assert found is not None
    assert (found[0].value, found[1].part.value, found[1].number) == (reason, part, number)
    assert 0 <= found[1].bytes_kept < found[1].bytes_before


def test_a_mark_of_the_cache_that_moves_is_no_change() -> None:
    marked = {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}
    first = marks_of(
        {
            "system": [marked],
            "tools": [{"name": "a", "cache_control": {}}],
            "messages": [{"content": [marked]}],
        },
        SALT,
    )
    bare = {"type": "text", "text": "hi"}
    then = marks_of({"system": [bare], "tools": [{"name": "a"}], "messages": [{"content": [bare]}, HI]}, SALT)
    assert diverged(first, then) is None
    assert [mark.kind for mark in first] == [PromptPart.TOOLS, PromptPart.SYSTEM, PromptPart.MESSAGE]


def test_a_responses_request_has_parts_too() -> None:
    items = [HI, {"type": "function_call", "name": "a"}, {"type": "function_call_output", "output": "1"}]
    marks = marks_of({"instructions": "Be brief.", "input": items}, SALT)
    assert [mark.role for mark in marks] == ["system", "user", "assistant", "tool"]
    assert len(marks_of({"input": "hi"}, SALT)) == 1
    assert marks_of({"prompt": "hi"}, SALT) == ()


@pytest.mark.parametrize(
    "messages",
    [
        [None, 1, "x", [[]]],
        [{"role": 5, "content": {"a": [{}] * 50}}],
        [{"role": "\x1b[2J" * 99}],
        [HI] * 9000,
        7,
    ],
)
def test_odd_messages_have_marks_without_a_word_of_them(messages: Any) -> None:
    marks = marks_of({"messages": messages, "system": 3, "tools": {"a": 1}}, SALT)
    assert len(marks) <= 4096
    assert all("\x1b" not in mark.role for mark in marks)


def test_without_the_salt_a_hash_says_nothing() -> None:
    (one,), (other,) = chat(HI), marks_of({"messages": [HI]}, b"other")
    assert one.digest != other.digest


def turn(
    marks: Any,
    prompt: int | None,
    cached: int | None,
    seconds: float | None = 2.0,
    at: str = "e1",
    **more: Any,
) -> Turn:
    return Turn("req", 1.0, at, "m", marks, prompt, cached, seconds, **more)


def test_what_was_read_again_and_what_it_cost() -> None:
    before = turn(chat(SYSTEM, HI), 1000, 0)
    told = compared(before, turn(chat(SYSTEM, HI, HELLO, MORE), 1200, 990))
    assert (told.reason, told.read_again) == (PrefixReason.REUSED, 10)
    assert told.lost_seconds == pytest.approx(2.0 * 10 / 210)
    cold = compared(before, turn(chat(SYSTEM, HI, HELLO, MORE), 1200, 0))
    assert (cold.reason, cold.read_again) == (PrefixReason.CACHE_COLD, 1000)
    assert cold.lost_seconds == pytest.approx(2.0 * 1000 / 1200)
    edited = compared(before, turn(chat(SYSTEM, MORE), 1000, 400))
    assert (edited.reason, edited.read_again) == (PrefixReason.MESSAGE_CHANGED, 600)
    anyway = compared(before, turn(chat(HI, MORE), 1000, 990))
    assert anyway.reason is PrefixReason.REUSED, "the engine left out what changed"
    assert anyway.diverged is not None
    short = compared(turn(chat(HI), 20, 0), turn(chat(HI, HELLO), 30, 0))
    assert short.reason is PrefixReason.CACHE_COLD, "few tokens can be all of them"
    other = compared(before, turn(chat(SYSTEM, HI, HELLO), 1100, 0, at="e2"))
    assert other.reason is PrefixReason.OTHER_ENGINE


@pytest.mark.parametrize(
    ("cached", "step", "reason", "ended", "again"),
    [
        pytest.param(1536, 768, PrefixReason.CHECKPOINT, 1536, 464, id="at the last whole block"),
        pytest.param(768, 768, PrefixReason.CACHE_COLD, 768, 1232, id="a block was evicted"),
        pytest.param(0, 2080, PrefixReason.CHECKPOINT, 0, 2000, id="shorter than a block"),
        pytest.param(0, 768, PrefixReason.CACHE_COLD, 0, 2000, id="nothing is left of it"),
        pytest.param(
            1400, None, PrefixReason.CHECKPOINT, 1400, 600, id="llama.cpp, whose states are anywhere"
        ),
        pytest.param(0, None, PrefixReason.CACHE_COLD, 0, 2000, id="llama.cpp, another slot"),
        pytest.param(1990, 16, PrefixReason.REUSED, 1990, 10, id="next to nothing"),
    ],
)
def test_a_hybrids_hit_ends_at_a_state_that_was_kept(
    cached: int, step: int | None, reason: PrefixReason, ended: int, again: int
) -> None:
    before = turn(chat(SYSTEM, HI), 2000, 0)
    told = compared(before, turn(chat(SYSTEM, HI, HELLO), 2500, cached, checkpoints=True, step=step))
    assert (told.reason, told.checkpoint, told.checkpoint_again) == (reason, ended, again)
    assert (f"{again:,}" in turn_text(told)) == (again > 0)


def test_of_an_edit_what_the_state_cost_is_told_apart() -> None:
    before = turn(chat(SYSTEM, HI), 2000, 0)
    edited = compared(before, turn(chat(SYSTEM, MORE), 2000, 500, checkpoints=True, step=500))
    assert edited.diverged is not None
    kept = 2000 * edited.diverged.bytes_kept / edited.diverged.bytes_before
    assert edited.reason is PrefixReason.MESSAGE_CHANGED
    assert edited.read_again == 1500
    assert edited.checkpoint_again == round(kept) - 500
    dense = compared(before, turn(chat(SYSTEM, MORE), 2000, 500))
    assert (dense.checkpoint, dense.checkpoint_again) == (None, None)
    elsewhere = compared(before, turn(chat(SYSTEM, HI), 2000, 0, at="e2", checkpoints=True))
    assert (elsewhere.reason, elsewhere.checkpoint) == (PrefixReason.OTHER_ENGINE, None)
    first = compared(None, turn(chat(HI), 100, 0, checkpoints=True))
    assert (first.reason, first.checkpoint) == (PrefixReason.FIRST_TURN, None)


def test_what_was_not_measured_is_not_zero() -> None:
    before = turn(chat(HI), None, None)
    told = compared(before, turn(chat(HI, HELLO), 100, None, None))
    assert (told.read_again, told.lost_seconds, told.reason) == (None, None, PrefixReason.NOT_MEASURED)
    known = compared(turn(chat(HI), 100, 0), turn(chat(HI, HELLO), 120, 0, None))
    assert (known.read_again, known.lost_seconds) == (100, None)
    first = compared(None, turn(chat(HI), 100, 0))
    assert (first.reason, first.read_again, first.lost_seconds) == (PrefixReason.FIRST_TURN, None, None)


def test_a_conversation_is_named_by_headers_or_the_body() -> None:
    session = "0f3a9c1e-1111-4222-8333-444455556666"
    body = {"prompt_cache_key": "key", "metadata": {"user_id": f"user_abc_account__session_{session}"}}
    found = named_conversation({"x-claude-code-session-id": session}, body)
    assert found is not None
    assert (found.source, found.label) == ("x-claude-code-session-id", "0f3a9c1e")
    found = named_conversation({}, body)
    assert found is not None
    assert (found.source, found.label) == ("prompt_cache_key", "")
    del body["prompt_cache_key"]
    found = named_conversation({}, body)
    assert found is not None
    assert (found.value, found.source) == (session, "metadata.user_id")
    person = named_conversation({"x-session-id": "mary@example.org"}, {})
    assert person is not None
    assert person.label == "", "a name that may tell of a person is not shown"
    assert named_conversation({}, {"prompt_cache_key": 5, "metadata": [1]}) is None
