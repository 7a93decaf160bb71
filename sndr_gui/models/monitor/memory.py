"""The holders of memory, as Monitor shows it; read only while it is looked at."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.errors import Problem
from engine_host.protocol.host import RECORDED
from engine_host.protocol.language import tr
from engine_host.protocol.operations import table as ops
from engine_host.protocol.telemetry import MemoryDevice, MemoryPage, MemoryUser, Sample
from sndr_gui.host.session import Session
from sndr_gui.kit import formats

_EVERY = 2.0
"""Seconds between two readings: the driver's list of processes takes it some milliseconds."""
_COLOURS = {
    "weights": 0,
    "KV cache": 1,
    "states": 2,
    "compute": 3,
    "CUDA graphs": 5,
    "output": 5,
    "draft head": 4,
}
_REST_OF_AN_ENGINE, OTHERS, FREE = 6, -1, -2


@dataclass(frozen=True)
class Segment:
    """A piece of a bar: bytes, its colour among those of parts, and what it is."""

    label: str
    size: int
    colour: int

    @property
    def sentence(self) -> str:
        """The piece in words."""
        return f"{self.label}: {formats.size(self.size)}"


@dataclass(frozen=True)
class Bar:
    """One device: its title, its segments from the left, and what is not measured of it."""

    title: str
    total: int
    segments: tuple[Segment, ...]
    unknown: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The bar for whoever cannot see it."""
        parts = "; ".join(segment.sentence for segment in self.segments)
        missing = (
            (" " + tr("Not measured: {unknown}.", unknown="; ".join(self.unknown))) if self.unknown else ""
        )
        return f"{self.title}. {parts}.{missing}"


def bar_of(device: MemoryDevice) -> Bar:
    """Return a device as its bar: engines by their parts, others by their names, then what is free."""
    segments: list[Segment] = []
    unknown: list[str] = []
    for user in device.users:
        _add(user, segments, unknown)
    if device.rest is None:
        unknown.append(tr("what others hold"))
    elif device.rest:
        named = tr("Other programs") if device.name == "RAM" else tr("Held, by nobody who is listed")
        segments.append(Segment(named, device.rest, OTHERS))
    held = sum(segment.size for segment in segments)
    if device.name != "RAM" or held <= device.total:
        free = max(0, device.total - max(held, device.used))
        segments.append(Segment(tr("Free"), free, FREE))
    mark = f"  ({RECORDED})" if device.recorded else ""
    title = f"{device.name}{mark}  ·  {formats.used_of(device.used, device.total)}"
    return Bar(title, device.total, tuple(one for one in segments if one.size), tuple(unknown))


def _add(user: MemoryUser, segments: list[Segment], unknown: list[str]) -> None:
    if not user.engine:
        named = f"{user.name} ({user.pid})"
        if user.memory is None:
            unknown.append(named)
        else:
            segments.append(Segment(named, user.memory, OTHERS))
        return
    for part in user.parts:
        label = f"{user.name}: {part.name}"
        if part.memory is None:
            unknown.append(label)
        else:
            segments.append(Segment(label, part.memory, _COLOURS.get(part.name, _REST_OF_AN_ENGINE)))
    if not user.parts:
        if user.memory is None:
            unknown.append(user.name)
        else:
            segments.append(Segment(user.name, user.memory, _REST_OF_AN_ENGINE))


class MemoryModel(QObject):
    """The newest answer of who holds memory.

    Signals:
        changed: another answer, or a failure
    """

    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.page: MemoryPage | None = None
        self.problem: Problem | None = None
        self._shown = False
        self._asking = False
        self._asked_at = float("-inf")
        session.state.sampled.connect(self._on_sample)

    def set_shown(self, shown: bool) -> None:
        """Begin to read, or stop."""
        self._shown = shown
        if shown:
            self.load()

    def load(self) -> None:
        """Ask the host."""
        if self._asking or not self.session.connection.connected:
            return
        self._asking = True

        async def work(client: AsyncControlClient) -> None:
            self.page = await client.call(ops.MEMORY)
            self.problem = None
            self.changed.emit()

        self.session.command("memory", work, done=self._on_done, failed=self._on_failed)

    @property
    def bars(self) -> tuple[Bar, ...]:
        """The devices as bars."""
        return tuple(bar_of(device) for device in self.page.devices) if self.page is not None else ()

    @property
    def on_gpus(self) -> bool:
        """Tell whether a driver was asked, too, and not the system alone."""
        return self.page is not None and any(device.name != "RAM" for device in self.page.devices)

    def _on_done(self) -> None:
        self._asking = False

    def _on_failed(self, error: HostError) -> None:
        self.problem = error.problem
        self.changed.emit()

    def _on_sample(self, sample: Sample) -> None:
        if self._shown and not _EVERY > sample.at - self._asked_at >= 0:
            self._asked_at = sample.at
            self.load()
