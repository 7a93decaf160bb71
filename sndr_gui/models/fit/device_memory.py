"""The memory of a device by part, as it is drawn and described."""

from __future__ import annotations

from dataclasses import dataclass

from engine_host.protocol.language import tr
from engine_host.protocol.launch.fit import DeviceFit, FitPart, FitReport, PartSource, Verdict
from sndr_gui.kit import formats
from sndr_gui.kit.setting_words import word_of

VERDICTS = {
    Verdict.FITS: (tr("fits"), "good"),
    Verdict.TIGHT: (tr("tight"), "warn"),
    Verdict.UNKNOWN: (tr("not known"), "muted"),
    Verdict.DOES_NOT_FIT: (tr("does not fit"), "bad"),
    Verdict.CANNOT_RUN: (tr("cannot run here"), "bad"),
}
SOURCES = {
    PartSource.FILES: tr("from the files"),
    PartSource.CATALOGUE: tr("from the catalogue"),
    PartSource.HUB: tr("from Hugging Face"),
    PartSource.FORMULA: tr("computed"),
    PartSource.MEASURED: tr("corrected by starts here"),
    PartSource.ESTIMATE: tr("estimated"),
}
# Which colour of the theme a part has: the same one in every model and engine.
_COLOURS = {
    "weights": 0,
    "KV cache": 1,
    "KV cache and states": 1,
    "states": 2,
    "activations": 3,
    "compute": 3,
    "gated-delta prefill": 4,
    "CUDA graphs": 5,
    "output": 5,
    "CUDA context": 6,
    "processes": 6,
    "server": 6,
    "stream buffers": 2,
    "libraries": 8,
}
_OTHER = 7
_PROCESSOR = "processor"


@dataclass(frozen=True)
class MemoryPart:
    """One part of the memory of a device, in bytes; `colour` is its index among the theme's colours."""

    name: str
    size: int
    low: int
    high: int
    colour: int
    source: str
    note: str

    @property
    def has_band(self) -> bool:
        """True when the size is an estimate with a band."""
        return self.low < self.size or self.high > self.size

    @property
    def band(self) -> str:
        """The bytes that it may lie between; empty where it is exact."""
        return (
            tr("{size} to {size_2}", size=formats.size(self.low), size_2=formats.size(self.high))
            if self.has_band
            else ""
        )

    @property
    def sentence(self) -> str:
        """The part with its band, its source and what it is for."""
        band = f", {self.band}" if self.has_band else ""
        note = f": {self.note}" if self.note else ""
        return f"{self.name} {formats.size(self.size)}{band}, {self.source}{note}"


@dataclass(frozen=True)
class DeviceMemory:
    """One device: what others hold, the parts on top of it, and how far the engine may go; bytes."""

    name: str
    total: int
    taken: int
    usable: int
    needed: int
    parts: tuple[MemoryPart, ...]

    @property
    def low(self) -> int:
        """The least that all parts may come to."""
        return sum(part.low for part in self.parts)

    @property
    def high(self) -> int:
        """The most that all parts may come to."""
        return sum(part.high for part in self.parts)

    @property
    def limit(self) -> int:
        """The end of the usable memory, counted from the start of the device."""
        return min(self.taken + self.usable, self.total)

    @property
    def fits(self) -> bool:
        """True when the parts lie within the usable memory."""
        return self.needed <= self.usable

    @property
    def extent(self) -> int:
        """The bytes that a drawing of the device has to show."""
        return max(self.total, self.taken + self.needed, self.taken + self.high)

    @property
    def usage(self) -> str:
        """Needed and usable memory: `15.2 GiB of 21.6 GiB`."""
        return tr("{size} of {size_2}", size=formats.size(self.needed), size_2=formats.size(self.usable))

    @property
    def remainder(self) -> str:
        """The memory that stays free, or that is missing."""
        left = self.usable - self.needed
        return (
            tr("{size} free", size=formats.size(left))
            if left >= 0
            else tr("{size} missing", size=formats.size(-left))
        )

    @property
    def sentence(self) -> str:
        """The whole device for whoever cannot see the bar."""
        parts = "; ".join(part.sentence for part in self.parts)
        held = (" " + tr("Other processes hold {size}.", size=formats.size(self.taken))) if self.taken else ""
        return tr(
            "{name}, {size}: needs {needed} of the {usable} that the engine may use, "
            "{remainder}.{held} Parts: {parts}.",
            name=self.name,
            size=formats.size(self.total),
            needed=formats.size(self.needed),
            usable=formats.size(self.usable),
            remainder=self.remainder,
            held=held,
            parts=parts,
        )


def device_memories(report: FitReport | None) -> tuple[DeviceMemory, ...]:
    """Return one entry a device; none while nothing was computed."""
    devices = report.devices if report else ()
    return tuple(_device_memory(device, alone=len(devices) == 1) for device in devices)


def _device_memory(device: DeviceFit, *, alone: bool) -> DeviceMemory:
    # One card needs no number.
    name = device.name.partition(" #")[0] if alone else device.name
    return DeviceMemory(
        name="RAM" if name == _PROCESSOR else name,
        total=device.total,
        taken=device.taken,
        usable=device.room,
        needed=device.needed,
        parts=tuple(_memory_part(part) for part in device.parts if part.size or part.high),
    )


def _memory_part(part: FitPart) -> MemoryPart:
    colour = _COLOURS.get(part.name, _OTHER)
    return MemoryPart(
        word_of(part.name), part.size, part.low, part.high, colour, SOURCES[part.source], part.note
    )


def summary(report: FitReport | None) -> str:
    """Return the answer in one line: needed, usable and free memory of the fullest device."""
    devices = device_memories(report)
    if not devices:
        return ""
    fullest = max(devices, key=lambda device: device.needed - device.usable)
    needed, usable = formats.size(fullest.needed), formats.size(fullest.usable)
    said = tr("{needed} needed", needed=needed)
    if len(devices) > 1:
        said = tr("{needed} needed on each of {devices} GPUs", needed=needed, devices=len(devices))
    return f"{said}  ·  {tr('{usable} usable', usable=usable)}  ·  {fullest.remainder}"
