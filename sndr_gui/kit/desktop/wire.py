"""Messages of D-Bus as bytes, as far as notifications need them: written in little endian, read in both.

Qt's own binding for Python cannot send an unsigned number, which `Notify` asks for.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

MOST = 1 << 20
"""Bytes of a message that is read; what notifications send is far below."""
CALL, REPLY, ERROR, SIGNAL = 1, 2, 3, 4
_NUMBERS = {
    "y": "B",
    "n": "h",
    "q": "H",
    "i": "i",
    "u": "I",
    "x": "q",
    "t": "Q",
    "d": "d",
    "b": "I",
    "h": "I",
}
_TEXTS = {"s": "I", "o": "I", "g": "B"}
_NAMES = {"path": (1, "o"), "interface": (2, "s"), "member": (3, "s"), "reply_to": (5, "u")}
_NAMES |= {"destination": (6, "s"), "signature": (8, "g")}
_DEEPEST = 16


@dataclass(frozen=True)
class Message:
    """One message; `reply_to` is the serial that a reply or an error answers."""

    kind: int
    serial: int
    path: str = ""
    interface: str = ""
    member: str = ""
    reply_to: int = 0
    destination: str = ""
    signature: str = ""
    body: tuple[object, ...] = field(default=())

    def packed(self) -> bytes:
        """Return the message as bytes. Raises ValueError, struct.error for a body of another signature."""
        body = _Writer()
        for one, value in zip(_split(self.signature), self.body, strict=True):
            body.write(one, value)
        fields = [
            (code, (kind, getattr(self, name)))
            for name, (code, kind) in _NAMES.items()
            if getattr(self, name)
        ]
        head = _Writer()
        head.data += struct.pack("<cBBBII", b"l", self.kind, 0, 1, len(body.data), self.serial)
        head.write("a(yv)", fields)
        head.align(8)
        return bytes(head.data + body.data)


def length(begin: bytes) -> int:
    """Return the bytes of the whole message that begins so (16 bytes). Raises ValueError."""
    order = {b"l": "<", b"B": ">"}.get(begin[:1])
    if order is None:
        raise ValueError("no message of D-Bus")
    body, _serial, fields = struct.unpack(f"{order}III", begin[4:16])
    whole = 16 + fields + -(16 + fields) % 8 + body
    if whole > MOST:
        raise ValueError(f"a message of {whole} bytes")
    return int(whole)


def read(data: bytes) -> Message:
    """Return the message in these bytes, all of them. Raises ValueError."""
    try:
        reader = _Reader(data, "<" if data[:1] == b"l" else ">")
        _order, kind, _flags, _version, _length, serial = (next(reader.read(one)) for one in "yyyyuu")
        found = dict(next(reader.read("a(yv)")))  # type: ignore[call-overload]
        reader.align(8)
        known = {name: found[code] for name, (code, _kind) in _NAMES.items() if code in found}
        body = tuple(value for one in _split(str(known.get("signature", ""))) for value in reader.read(one))
    except (struct.error, StopIteration, UnicodeDecodeError, RecursionError, TypeError) as error:
        raise ValueError("no message of D-Bus") from error
    return Message(kind, serial, body=body, **known)  # type: ignore[arg-type]


def _split(signature: str) -> list[str]:
    """Return the single types of a signature. Raises ValueError."""
    found, place = [], 0
    while place < len(signature):
        end = _end(signature, place, 0)
        found.append(signature[place:end])
        place = end
    return found


def _end(signature: str, place: int, depth: int) -> int:
    """Return the place behind the type that begins here."""
    sign = signature[place : place + 1]
    if depth > _DEEPEST or not sign:
        raise ValueError("no signature")
    if sign == "a":
        return _end(signature, place + 1, depth + 1)
    if closing := {"(": ")", "{": "}"}.get(sign):
        place += 1
        while signature[place : place + 1] != closing:
            place = _end(signature, place, depth + 1)
        return place + 1
    if sign in _NUMBERS or sign in _TEXTS or sign == "v":
        return place + 1
    raise ValueError("no signature")


def _size(kind: str) -> int:
    """Return to how many bytes a type is aligned."""
    if kind[0] in "({":
        return 8
    if kind[0] == "a":
        return 4
    return struct.calcsize(_NUMBERS.get(kind) or _TEXTS.get(kind) or "B")


class _Writer:
    def __init__(self) -> None:
        self.data = bytearray()

    def align(self, size: int) -> None:
        self.data += bytes(-len(self.data) % size)

    def write(self, kind: str, value: object) -> None:
        """Write a value; of a variant its type and itself, of a dictionary its pairs."""
        self.align(_size(kind))
        if kind in _NUMBERS:
            self.data += struct.pack(f"<{_NUMBERS[kind]}", value)
        elif kind in _TEXTS:
            text = str(value).replace("\0", "").encode()
            self.data += struct.pack(f"<{_TEXTS[kind]}", len(text)) + text + b"\0"
        elif kind == "v":
            own, held = cast("tuple[str, object]", value)
            self.write("g", own)
            self.write(own, held)
        elif kind[0] == "a":
            place = len(self.data)
            self.data += bytes(4)
            self.align(_size(kind[1:]))
            begin = len(self.data)
            for one in value.items() if isinstance(value, dict) else value:  # type: ignore[attr-defined]
                self.write(kind[1:], one)
            self.data[place : place + 4] = struct.pack("<I", len(self.data) - begin)
        else:
            for one, part in zip(_split(kind[1:-1]), value, strict=True):  # type: ignore[call-overload]
                self.write(one, part)


class _Reader:
    def __init__(self, data: bytes, order: str) -> None:
        self._data, self._order, self._place = data, order, 0

    def align(self, size: int) -> None:
        self._place += -self._place % size

    def _number(self, form: str) -> int:
        (value,) = struct.unpack_from(self._order + form, self._data, self._place)
        self._place += struct.calcsize(form)
        return int(value) if form != "d" else value

    def read(self, kind: str, depth: int = 0) -> Iterator[object]:
        """Yield the one value of a type. Raises ValueError, struct.error, UnicodeDecodeError."""
        if depth > _DEEPEST:
            raise ValueError("nested too deep")
        self.align(_size(kind))
        if kind in _NUMBERS:
            yield self._number(_NUMBERS[kind])
        elif kind in _TEXTS:
            count = self._number(_TEXTS[kind])
            text = self._data[self._place : self._place + count]
            self._place += count + 1
            yield text.decode()
        elif kind == "v":
            own = str(next(self.read("g")))
            if len(_split(own)) != 1:
                raise ValueError("a variant of no type")
            yield next(self.read(own, depth + 1))
        elif kind[0] == "a":
            count = self._number("I")
            self.align(_size(kind[1:]))
            end, found = self._place + count, []
            if end > len(self._data):
                raise ValueError("an array beyond its message")
            while self._place < end:
                found.append(next(self.read(kind[1:], depth + 1)))
            yield found
        else:
            parts: Sequence[str] = _split(kind[1:-1])
            yield tuple(next(self.read(one, depth + 1)) for one in parts)
