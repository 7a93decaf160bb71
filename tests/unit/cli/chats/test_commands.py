"""`sndr chats` reads the files of this machine; no host is asked."""

import json
from collections.abc import Callable
from pathlib import Path

from engine_host.client.chats.record import Conversation, Lane, Turn
from engine_host.client.chats.store import ChatStore
from engine_host.core.paths import Folders
from tests.unit.cli.fake_host import FakeHost

Sndr = Callable[..., tuple[int, str, str]]


def keep(number: int, question: str) -> str:
    turns = (Turn(role="user", text=question), Turn(role="assistant", parent=0, text="Yes.", engine="demo"))
    lane = Lane(engine="demo", leaf=1, messages=turns)
    name = f"2026010{number}-030405-aaaaaa"
    ChatStore(Folders.resolve().chats).write(
        Conversation(id=name, title=question, changed=1e9 + number, lanes=(lane,))
    )
    return name


def test_conversations_are_listed_shown_renamed_and_removed(
    host: FakeHost, sndr: Sndr, tmp_path: Path
) -> None:
    assert "No conversation is kept here." in sndr("chats", "list")[1]
    first, second = keep(1, "Is it \x1b[31mred?"), keep(2, "Is it blue?")
    code, out, _ = sndr("chats", "list")
    assert code == 0
    assert "\x1b" not in out
    assert out.index(second) < out.index(first)
    assert [
        one["id"] for one in json.loads(sndr("chats", "list", "--search", "blue", "--json")[1])["chats"]
    ] == [second]
    assert "Is it blue?" in sndr("chats", "export", second[:9])[1]
    assert json.loads(sndr("chats", "export", second, "--json")[1])["title"] == "Is it blue?"
    target = tmp_path / "out.json"
    assert sndr("chats", "export", second, "--output", str(target))[0] == 0
    assert json.loads(target.read_text())["id"] == second
    assert sndr("chats", "rename", second, "Colours")[0] == 0
    assert "Colours" in sndr("chats", "list")[1]
    assert (sndr("chats", "export", "2026")[0], sndr("chats", "export", "1999")[0]) == (6, 4)
    assert sndr("chats", "remove")[0] == 2
    assert sndr("chats", "remove", "--all", "--json")[0] == 2, "nobody was asked"
    assert sndr("chats", "remove", first)[0] == 0
    assert sndr("chats", "remove", "--all", "--yes")[0] == 0
    assert "No conversation" in sndr("chats", "list")[1]
    assert sndr("--host", "gpu", "chats", "list")[0] == 2
    assert not host.received
