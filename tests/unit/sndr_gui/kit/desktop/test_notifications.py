"""Notifications over a FAKE bus of the session: shown, replaced by key, clicked; and desktops without one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sndr_gui.kit.desktop.notifications import Notifications, bus_address
from sndr_gui.kit.desktop.wire import ERROR, REPLY, SIGNAL, Message, length, read
from tests.unit.asynchronous import run, until

NAME, PATH = "org.freedesktop.Notifications", "/org/freedesktop/Notifications"


class FakeBus:
    """Stands in for the bus and the desktop behind it; FAKE."""

    def __init__(self, refuses: bool) -> None:
        self.refuses, self.shown = refuses, list[Message]()
        self.writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        assert (await reader.readline()).startswith(b"\0AUTH EXTERNAL ")
        writer.write(b"OK 1234\r\n")
        assert await reader.readline() == b"BEGIN\r\n"
        while begin := await reader.read(16):
            asked = read(begin + await reader.readexactly(length(begin) - 16))
            if asked.member != "Notify":
                answer = Message(REPLY, 1, reply_to=asked.serial)
            elif self.refuses:
                answer = Message(ERROR, 1, reply_to=asked.serial, signature="s", body=("nobody shows it",))
            else:
                self.shown.append(asked)
                number = asked.body[1] or 6 + len(self.shown)
                answer = Message(REPLY, 1, reply_to=asked.serial, signature="u", body=(number,))
            writer.write(answer.packed())

    def tell(self, member: str, number: int, kind: str, said: object) -> None:
        self.writers[-1].write(
            Message(SIGNAL, 1, PATH, NAME, member, 0, "", "u" + kind, (number, said)).packed()
        )


@asynccontextmanager
async def bus(home: Path, monkeypatch: pytest.MonkeyPatch, refuses: bool = False) -> AsyncIterator[FakeBus]:
    made, path = FakeBus(refuses), home / "bus"
    server = await asyncio.start_unix_server(made.serve, path)
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", f"unix:path={path},guid=12")
    yield made
    server.close()
    for writer in made.writers:
        writer.close()
    await asyncio.sleep(0)
    path.unlink()


def test_one_for_each_key_is_shown_and_a_click_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        clicked: list[tuple[str, str]] = []
        notifications = Notifications(Path("/i.svg"), "Show")
        notifications.clicked = lambda key, token: clicked.append((key, token))
        async with bus(home, monkeypatch) as desktop:
            assert await notifications.show("a", "qwen is ready.", "1 < 2 & <b>x</b>")
            assert await notifications.show("b", "other", "")
            assert await notifications.show("a", "qwen failed.", "")
            bodies = [one.body for one in desktop.shown]
            assert [body[3] for body in bodies] == ["qwen is ready.", "other", "qwen failed."]
            assert bodies[0][4] == "1 &lt; 2 &amp; &lt;b&gt;x&lt;/b&gt;", "no mark-up of somebody else"
            assert [body[1] for body in bodies] == [0, 0, 7], "the later one takes the place of the first"
            desktop.tell("ActivationToken", 7, "s", "token-1")
            desktop.tell("ActionInvoked", 99, "s", "default")
            desktop.tell("ActionInvoked", 7, "s", "default")
            desktop.tell("NotificationClosed", 8, "u", 2)
            await until(lambda: clicked)
            assert clicked == [("a", "token-1")]
            desktop.writers[-1].close()
            await until(lambda: not notifications.connected)
            assert await notifications.show("b", "again", ""), "over a new connection"
            assert desktop.shown[-1].body[1] == 0
            await notifications.close()

    run(work())


def test_a_desktop_that_shows_none_goes_without_a_word(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        notifications = Notifications(Path("/i.svg"), "Show")
        for address in ("disabled:", f"unix:path={home / 'nothing'}", "tcp:host=x"):
            monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
            assert not await notifications.show("a", "said", "")
        async with bus(home, monkeypatch, refuses=True):
            assert not await notifications.show("a", "said", "")
            await notifications.close()

    run(work())


def test_the_bus_is_where_the_session_says(home: Path) -> None:
    assert bus_address({"DBUS_SESSION_BUS_ADDRESS": "unix:abstract=/tmp/a%20b,guid=1"}) == "\0/tmp/a b"
    assert bus_address({"DBUS_SESSION_BUS_ADDRESS": "tcp:host=x;unix:path=/run/b"}) == "/run/b"
    assert bus_address({"DBUS_SESSION_BUS_ADDRESS": "disabled:"}) is None
    assert bus_address({"XDG_RUNTIME_DIR": str(home)}) is None
    assert bus_address({}) is None
