"""Conversations in files: private, bounded, searched, and never a reason to fail when one is damaged."""

import json
import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from engine_host.client.chats import export, store
from engine_host.client.chats.record import Call, Conversation, Lane, Measured, Turn, title_of
from engine_host.client.chats.sampling import SAMPLING, checked, words_of
from engine_host.client.chats.store import ChatStore
from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason


def conversation(number: int = 1, question: str = "How large?", **fields: object) -> Conversation:
    """A question with two answers, of which the second is shown."""
    turns = (
        Turn(role="user", text=question),
        Turn(role="assistant", parent=0, text="Small.", engine="first"),
        Turn(
            role="assistant",
            parent=0,
            text="Large:\n\n```py\nx\n```",
            reasoning="Hm ``` hm",
            calls=(Call(name="look", arguments='{"a": 1}'),),
            engine="first",
            measured=Measured(ttft=0.25, rate=50.0, tokens=9, draft_tokens=10, draft_accepted=7),
        ),
    )
    plain = {
        "id": f"20260102-030405-{number:06x}",
        "title": f"Talk {number}",
        "created": 1e9,
        "changed": 1e9 + number,
        "sampling": {"temperature": 0.5},
        "lanes": (Lane(engine="first", leaf=2, messages=turns),),
    }
    return Conversation.model_validate(plain | fields)


def test_what_is_written_is_read_and_is_nobody_elses(tmp_path: Path) -> None:
    kept = ChatStore(tmp_path / "data" / "chats")
    assert kept.entries() == ([], 0)
    one = conversation(title="Grüße \u202eהפוך", question="x\u2028\x1b[31m")
    kept.write(one)
    assert kept.read(one.id) == one
    (file,) = kept.folder.iterdir()
    assert (file.stat().st_mode & 0o777, kept.folder.stat().st_mode & 0o777) == (0o600, 0o700)
    entries, damaged = kept.entries()
    assert ([(entry.id, entry.engines, entry.messages) for entry in entries], damaged) == (
        [(one.id, ("first",), 3)],
        0,
    )
    assert "\u202e" not in entries[0].title, "a title of a list is in visible characters"
    assert kept.rename(one.id, "  New\nname ").title == "New"
    kept.remove(one.id)
    assert kept.ids() == []
    for broken in (one.id, "../../etc/passwd", ""):
        with pytest.raises(HostError) as failed:
            kept.read(broken)
        assert failed.value.reason is Reason.NOT_FOUND


def test_the_newest_come_first_and_the_oldest_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST", 3)
    kept = ChatStore(tmp_path)
    for number in range(1, 6):
        kept.write(conversation(number))
        os.utime(tmp_path / f"{conversation(number).id}.jsonl", (number, number))
    assert [entry.title for entry in kept.entries()[0]] == ["Talk 5", "Talk 4", "Talk 3"]
    monkeypatch.setattr(store, "LARGEST", 1000)
    with pytest.raises(HostError) as failed:
        kept.write(conversation(3, question="x" * 2000))
    assert failed.value.reason is Reason.BAD_REQUEST
    assert kept.read(conversation(3).id) == conversation(3), "what was there stays"


def test_words_are_found_in_titles_and_messages_and_not_in_names_of_fields(tmp_path: Path) -> None:
    kept = ChatStore(tmp_path)
    kept.write(conversation(1, 'Say "Straße"'))
    kept.write(conversation(2, "about whales"))
    assert [entry.title for entry in kept.search('SAY "strasse"')[0]] == ["Talk 1"]
    assert [entry.title for entry in kept.search("whales talk")[0]] == ["Talk 2"]
    assert kept.search("parent")[0] == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[" * 50_000,
        b'{"changed": true}\n{}',
        b'{"changed": 1e999}\n',
        b'{"title": 5, "changed": 5}\n{"id": "x"}\n',
        b'{"changed": 5}\n' + json.dumps({"id": "20260102-030405-000009", "lanes": []}).encode(),
    ],
)
def test_a_damaged_file_is_said_and_costs_no_other(tmp_path: Path, content: bytes) -> None:
    kept = ChatStore(tmp_path)
    kept.write(conversation(1))
    (tmp_path / "20260102-030405-000009.jsonl").write_bytes(content)
    os.mkfifo(tmp_path / "20260102-030405-000008.jsonl")
    (tmp_path / "notes.txt").write_text("mine")
    entries, damaged = kept.entries()
    assert "Talk 1" in [entry.title for entry in entries]
    assert damaged >= 1
    with pytest.raises(HostError) as failed:
        kept.read("20260102-030405-000009")
    assert failed.value.reason is Reason.UNSUPPORTED
    assert (tmp_path / "notes.txt").exists()


@pytest.mark.parametrize(
    "lane",
    [
        {"leaf": 5, "messages": [{"role": "user"}]},
        {"leaf": 0, "messages": [{"role": "user", "parent": 0}]},
        {"leaf": 0, "messages": [{"role": "user", "parent": 3}]},
        {"leaf": 0, "messages": [{"role": "system"}]},
    ],
)
def test_messages_that_are_no_tree_are_refused(lane: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Lane.model_validate(lane)


def test_values_out_of_their_bounds_are_left_out() -> None:
    wild: dict[str, object] = {
        "temperature": 99,
        "top_p": "0.5",
        "seed": True,
        "top_k": 40.5,
        "tools": 1,
        "min_p": 0.1,
    }
    assert checked(wild) == {"min_p": 0.1}
    assert words_of({"temperature": 0.7, "seed": 5}) == ["--temperature", "0.7", "--seed", "5"]
    assert words_of({"seed": 2_147_483_647})[1] == "2147483647"
    assert len({one.option for one in SAMPLING}) == len(SAMPLING)
    assert title_of("\n\n  one\ttwo \nthree") == "one two"


def test_an_export_has_what_is_shown_or_everything(tmp_path: Path) -> None:
    one = conversation(system="Be kind.")
    text = export.as_markdown(one)
    for said in (
        "# Talk 1",
        "Be kind.",
        "Temperature 0.5",
        "How large?",
        "````\nHm ``` hm\n````",
        "Tool call: look",
        "first token after 250 ms (client) · 50.0 tok/s · 9 tokens · 7 of 10 draft tokens accepted",
    ):
        assert said in text, said
    assert "Small." not in text, "a branch that is not shown"
    assert "prompt tokens" not in text, "it was not measured"
    assert Conversation.model_validate_json(export.as_json(one)) == one
    target = tmp_path / "out.md"
    target.write_text("before")
    export.write(target, text + "\ud800")
    assert target.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.md"]
    two = one.model_copy(update={"lanes": (*one.lanes, one.lanes[0].model_copy(update={"engine": "second"}))})
    assert "# second" in export.as_markdown(two)
