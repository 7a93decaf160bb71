"""Notifications of the desktop (org.freedesktop.Notifications), over the session's bus where there is one."""

from __future__ import annotations

import asyncio
import contextlib
import html
import itertools
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import unquote

from sndr_gui.kit.desktop.wire import CALL, ERROR, REPLY, SIGNAL, Message, length, read

_NAME, _PATH = "org.freedesktop.Notifications", "/org/freedesktop/Notifications"
_BUS = "org.freedesktop.DBus"
_PATIENCE = 5.0
_MOST_KNOWN = 100
_TOKEN = re.compile(r"[\w.:/=+-]{1,200}")


def bus_address(environment: Mapping[str, str]) -> str | None:
    """Return the socket of the session's bus, one of the abstract kind with a NUL before it; None without."""
    for address in environment.get("DBUS_SESSION_BUS_ADDRESS", "").split(";"):
        kind, _, rest = address.partition(":")
        values = dict(one.partition("=")[::2] for one in rest.split(","))
        if kind == "unix" and values.get("path"):
            return unquote(values["path"])
        if kind == "unix" and values.get("abstract"):
            return "\0" + unquote(values["abstract"])
    if environment.get("DBUS_SESSION_BUS_ADDRESS") or not environment.get("XDG_RUNTIME_DIR"):
        return None
    usual = Path(environment["XDG_RUNTIME_DIR"]) / "bus"
    return str(usual) if usual.is_socket() else None


class Notifications:
    """Shows notifications, one for each key, and tells which one was clicked.

    `clicked` gets the key, and the desktop's leave to come to the front (Wayland), which may be empty. A
    desktop that shows none goes without a word.
    """

    def __init__(self, icon: Path, action: str) -> None:
        """`action` names what a click does, for desktops that show it as a button."""
        self._icon, self._action = icon, action
        self.clicked: Callable[[str, str], object] = lambda _key, _token: None
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._serials = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Message]] = {}
        self._known: dict[str, int] = {}
        self._tokens: dict[int, str] = {}
        self._lock = asyncio.Lock()

    @property
    def connected(self) -> bool:
        """True while there is a connection to the bus."""
        return self._reading is not None and not self._reading.done()

    async def show(self, key: str, title: str, text: str) -> bool:
        """Show a notification in place of the one with its key; whether the desktop took it."""
        async with self._lock:
            try:
                async with asyncio.timeout(_PATIENCE):
                    await self._connect()
                    hints = {"desktop-entry": ("s", "sndr"), "urgency": ("y", 1)}
                    body = (
                        "SNDR Control Center",
                        self._known.get(key, 0),
                        str(self._icon),
                        title,
                        html.escape(text, quote=False),
                        ["default", self._action],
                        hints,
                        -1,
                    )
                    answer = await self._call(_NAME, _PATH, _NAME, "Notify", "susssasa{sv}i", body)
            except (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError):
                await self.close()
                return False
            number = answer.body[0] if answer.body else 0
            if not isinstance(number, int):
                return False
            self._known.pop(key, None)
            self._known[key] = number
            if len(self._known) > _MOST_KNOWN:
                self._known.pop(next(iter(self._known)))
            return True

    async def close(self) -> None:
        """Let the bus go."""
        reading, self._reading = self._reading, None
        writer, self._writer = self._writer, None
        self._known.clear()
        if reading is not None:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        if writer is not None:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _connect(self) -> None:
        if self.connected:
            return
        await self.close()
        address = bus_address(os.environ)
        if address is None:
            raise OSError("there is no bus of the session")
        reader, self._writer = await asyncio.open_unix_connection(address)
        self._writer.write(b"\0AUTH EXTERNAL " + str(os.getuid()).encode().hex().encode() + b"\r\n")
        if not (await reader.readline()).startswith(b"OK "):
            raise OSError("the bus of the session refused this user")
        self._writer.write(b"BEGIN\r\n")
        self._reading = asyncio.get_running_loop().create_task(
            self._read(reader), name="desktop notifications"
        )
        await self._call(_BUS, "/org/freedesktop/DBus", _BUS, "Hello")
        rule = f"type='signal',interface='{_NAME}',path='{_PATH}'"
        await self._call(_BUS, "/org/freedesktop/DBus", _BUS, "AddMatch", "s", (rule,))

    async def _call(
        self,
        to: str,
        path: str,
        interface: str,
        member: str,
        signature: str = "",
        body: tuple[object, ...] = (),
    ) -> Message:
        """Call a method, and return its reply. Raises OSError where that is an error or the bus goes."""
        assert self._writer is not None
        serial = next(self._serials)
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[serial] = answer
        try:
            sent = Message(CALL, serial, path, interface, member, 0, to, signature, body)
            self._writer.write(sent.packed())
            got = await answer
        finally:
            self._waiting.pop(serial, None)
        if got.kind == ERROR:
            raise OSError(str(got.body[:1]))
        return got

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                begin = await reader.readexactly(16)
                self._take(read(begin + await reader.readexactly(length(begin) - 16)))
        except (OSError, ValueError, asyncio.IncompleteReadError):
            pass
        finally:
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(OSError("the bus of the session is gone"))

    def _take(self, message: Message) -> None:
        if message.kind in {REPLY, ERROR}:
            waiting = self._waiting.get(message.reply_to)
            if waiting is not None and not waiting.done():
                waiting.set_result(message)
        elif message.kind == SIGNAL and message.interface == _NAME and len(message.body) == 2:
            number, said = message.body
            key = next((one for one, known in self._known.items() if known == number), None)
            if key is None or not isinstance(number, int):
                return
            if message.member == "ActivationToken" and isinstance(said, str) and _TOKEN.fullmatch(said):
                self._tokens[number] = said
            elif message.member == "ActionInvoked":
                self.clicked(key, self._tokens.pop(number, ""))
            elif message.member == "NotificationClosed":
                self._known.pop(key)
                self._tokens.pop(number, None)
