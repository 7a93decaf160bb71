"""Notifications over a FAKE bus of the session: shown, replaced by key, clicked; and desktops without one."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from jeepney import DBusAddress, HeaderFields, Message, new_error, new_method_return, new_signal
from jeepney.io.asyncio import DBusConnection

from sndr_gui.kit.desktop.notifications import Notifications, bus_address
from tests.unit.asynchronous import run, until

NAME, PATH = "org.freedesktop.Notifications", "/org/freedesktop/Notifications"


class FakeBus:
    """Stands in for the bus and the desktop behind it; FAKE."""

    def __init__(self, refuses: bool) -> None:
        self.refuses, self.shown = refuses, list[Message]()
        self.writers: list[asyncio.StreamWriter] = []
        self.connections: list[DBusConnection] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        assert (await reader.readline()).startswith(b"\0AUTH EXTERNAL ")
        writer.write(b"OK 1234\r\n")
        assert await reader.readline() == b"BEGIN\r\n"
        self.connections.append(DBusConnection(reader, writer))
        with contextlib.suppress(EOFError):
            while True:
                asked = await self.connections[-1].receive()
                if asked.header.fields[HeaderFields.member] != "Notify":
                    answer = new_method_return(asked)
                elif self.refuses:
                    answer = new_error(asked, "org.freedesktop.DBus.Error.ServiceUnknown", "s", ("none",))
                else:
                    self.shown.append(asked)
                    answer = new_method_return(asked, "u", (asked.body[1] or 6 + len(self.shown),))
                await self.connections[-1].send(answer)

    async def tell(self, member: str, number: int, kind: str, said: object) -> None:
        sender = DBusAddress(PATH, interface=NAME)
        await self.connections[-1].send(new_signal(sender, member, "u" + kind, (number, said)))


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
            assert await notifications.show("b", "oth\0er", "")
            assert await notifications.show("a", "qwen failed.", "")
            bodies = [one.body for one in desktop.shown]
            assert [body[3] for body in bodies] == ["qwen is ready.", "other", "qwen failed."]
            assert bodies[0][4] == "1 &lt; 2 &amp; &lt;b&gt;x&lt;/b&gt;", "no mark-up of somebody else"
            assert [body[1] for body in bodies] == [0, 0, 7], "the later one takes the place of the first"
            await desktop.tell("ActivationToken", 7, "s", "token-1")
            await desktop.tell("ActivationToken", 7, "s", "a token; with more")
            await desktop.tell("ActionInvoked", 99, "s", "default")
            await desktop.tell("ActionInvoked", 7, "s", "default")
            await desktop.tell("NotificationClosed", 8, "u", 2)
            await until(lambda: clicked)
            assert clicked == [("a", "token-1")]
            desktop.writers[-1].close()
            await until(lambda: not notifications.connected)
            assert await notifications.show("b", "again", ""), "over a new connection"
            assert desktop.shown[-1].body[1] == 0
            desktop.writers[-1].write(struct.pack("<cBBBIII", b"l", 2, 0, 1, 0, 5, 8) + b"\xff" * 8)
            await until(lambda: not notifications.connected)
            assert await notifications.show("b", "after what is no message", "")
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
    assert (
        bus_address({"DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/b", "XDG_RUNTIME_DIR": "/x"})
        == "unix:path=/run/b"
    )
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(home / "bus"))
        assert bus_address({"XDG_RUNTIME_DIR": str(home)}) == f"unix:path={home / 'bus'}"
    (home / "bus").unlink()
    assert bus_address({"XDG_RUNTIME_DIR": str(home)}) is None
    assert bus_address({}) is None
