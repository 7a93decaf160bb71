"""Notifications of the desktop (org.freedesktop.Notifications), over the session's bus where there is one."""

from __future__ import annotations

import asyncio
import contextlib
import html
import os
import re
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jeepney import DBusAddress, HeaderFields, MatchRule, Message, MessageType, new_method_call
from jeepney.auth import BEGIN, Authenticator
from jeepney.bus import get_bus
from jeepney.bus_messages import message_bus
from jeepney.io.asyncio import DBusConnection

_NAME = "org.freedesktop.Notifications"
_DESKTOP = DBusAddress("/org/freedesktop/Notifications", _NAME, _NAME)
_PATIENCE = 5.0
_LOST = (OSError, EOFError, ValueError, LookupError, TypeError, RuntimeError, struct.error)
"""No bus, one that ends or refuses, and bytes that are no message: a notification less, and nothing else."""
_MOST_KNOWN = 100
_TOKEN = re.compile(r"[\w.:/=+-]{1,200}")


def bus_address(environment: Mapping[str, str]) -> str | None:
    """Return the address of the session's bus; None where there is none."""
    if said := environment.get("DBUS_SESSION_BUS_ADDRESS"):
        return said
    usual = Path(environment.get("XDG_RUNTIME_DIR") or "/nowhere") / "bus"
    return f"unix:path={usual}" if usual.is_socket() else None


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
        self._bus: Any = None
        self._reading: asyncio.Task[None] | None = None
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
                        title.replace("\0", ""),
                        html.escape(text.replace("\0", ""), quote=False),
                        ["default", self._action],
                        hints,
                        -1,
                    )
                    asked = new_method_call(_DESKTOP, "Notify", "susssasa{sv}i", body)
                    answer = await self._call(asked)
            except _LOST:
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
        reader, self._writer = await asyncio.open_unix_connection(get_bus(address))
        login = Authenticator()
        for said in login:
            self._writer.write(said)
            login.feed(await reader.readline())
        self._writer.write(BEGIN)
        self._bus = DBusConnection(reader, self._writer)
        self._reading = asyncio.get_running_loop().create_task(self._read(), name="desktop notifications")
        await self._call(message_bus.Hello())
        rule = MatchRule(type="signal", interface=_NAME, path=_DESKTOP.object_path)
        await self._call(message_bus.AddMatch(rule))

    async def _call(self, asked: Message) -> Message:
        """Call a method, and return its reply. Raises OSError where that is an error or the bus goes."""
        serial = next(self._bus.outgoing_serial)
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[serial] = answer
        try:
            await self._bus.send(asked, serial=serial)
            got = await answer
        finally:
            self._waiting.pop(serial, None)
        if got.header.message_type is MessageType.error:
            raise OSError(str(got.body[:1]))
        return got

    async def _read(self) -> None:
        try:
            while True:
                self._take(await self._bus.receive())
        except _LOST:
            pass
        finally:
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(OSError("the bus of the session is gone"))

    def _take(self, message: Message) -> None:
        fields = message.header.fields
        if message.header.message_type is not MessageType.signal:
            waiting = self._waiting.get(fields.get(HeaderFields.reply_serial, 0))
            if waiting is not None and not waiting.done():
                waiting.set_result(message)
        elif fields.get(HeaderFields.interface) == _NAME and len(message.body) == 2:
            number, said = message.body
            key = next((one for one, known in self._known.items() if known == number), None)
            if key is None or not isinstance(number, int):
                return
            member = fields.get(HeaderFields.member)
            if member == "ActivationToken" and isinstance(said, str) and _TOKEN.fullmatch(said):
                self._tokens[number] = said
            elif member == "ActionInvoked":
                self.clicked(key, self._tokens.pop(number, ""))
            elif member == "NotificationClosed":
                self._known.pop(key)
                self._tokens.pop(number, None)
