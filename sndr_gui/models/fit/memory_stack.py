"""The stacked parts of a device's memory as they are drawn and said; no number here is made up."""

from __future__ import annotations

from dataclasses import dataclass

from engine_host.protocol.fit import DeviceFit, FitPart, FitReport, PartSource, Verdict
from sndr_gui.kit import formats

VERDICTS = {
    Verdict.FITS: ("fits", "good"),
    Verdict.TIGHT: ("tight", "warn"),
    Verdict.UNKNOWN: ("not known", "muted"),
    Verdict.DOES_NOT_FIT: ("does not fit", "bad"),
    Verdict.CANNOT_RUN: ("cannot run here", "bad"),
}
SOURCES = {
    PartSource.FILES: "read from the files",
    PartSource.CATALOGUE: "told by the catalogue",
    PartSource.HUB: "told by Hugging Face",
    PartSource.FORMULA: "computed",
    PartSource.MEASURED: "learnt from starts here",
    PartSource.ESTIMATE: "estimated",
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
class Piece:
    """One part in a stack, in bytes; `colour` is its place among the theme's colours of parts."""

    name: str
    size: int
    low: int
    high: int
    colour: int
    source: str
    note: str

    @property
    def has_band(self) -> bool:
        """Whether it may be more or less."""
        return self.low < self.size or self.high > self.size

    @property
    def band(self) -> str:
        """The bytes that it may lie between; empty where it is exact."""
        return f"{formats.size(self.low)} to {formats.size(self.high)}" if self.has_band else ""

    @property
    def sentence(self) -> str:
        """The part with its band, its source and what it is for."""
        band = f", {self.band}" if self.has_band else ""
        note = f": {self.note}" if self.note else ""
        return f"{self.name} {formats.size(self.size)}{band}, {self.source}{note}"


@dataclass(frozen=True)
class Stack:
    """One device: what others hold, the parts on top of it, and how far the engine may go; bytes."""

    name: str
    total: int
    taken: int
    room: int
    needed: int
    pieces: tuple[Piece, ...]

    @property
    def low(self) -> int:
        """The least that all parts may come to."""
        return sum(piece.low for piece in self.pieces)

    @property
    def high(self) -> int:
        """The most that all parts may come to."""
        return sum(piece.high for piece in self.pieces)

    @property
    def limit(self) -> int:
        """Where the engine's room ends, counted from the start of the device."""
        return min(self.taken + self.room, self.total)

    @property
    def fits(self) -> bool:
        """Whether the parts lie within the room."""
        return self.needed <= self.room

    @property
    def reach(self) -> int:
        """How much a drawing of it has to show."""
        return max(self.total, self.taken + self.needed, self.taken + self.high)

    @property
    def figure(self) -> str:
        """Needed and room: `15.2 GiB of 21.6 GiB`."""
        return f"{formats.size(self.needed)} of {formats.size(self.room)}"

    @property
    def rest(self) -> str:
        """What stays free, or what is missing."""
        left = self.room - self.needed
        return f"{formats.size(left)} free" if left >= 0 else f"{formats.size(-left)} missing"

    @property
    def sentence(self) -> str:
        """The whole device for whoever cannot see the bar."""
        parts = "; ".join(piece.sentence for piece in self.pieces)
        held = f" Other processes hold {formats.size(self.taken)}." if self.taken else ""
        return (
            f"{self.name}, {formats.size(self.total)}: needs {formats.size(self.needed)} of the "
            f"{formats.size(self.room)} that the engine may use, {self.rest}.{held} Parts: {parts}."
        )


def stacks_of(report: FitReport | None) -> tuple[Stack, ...]:
    """One stack a device; none while nothing was computed."""
    return tuple(_stack(device) for device in report.devices) if report else ()


def _stack(device: DeviceFit) -> Stack:
    return Stack(
        name="Main memory" if device.name == _PROCESSOR else device.name,
        total=device.total,
        taken=device.taken,
        room=device.room,
        needed=device.needed,
        pieces=tuple(_piece(part) for part in device.parts if part.size or part.high),
    )


def _piece(part: FitPart) -> Piece:
    colour = _COLOURS.get(part.name, _OTHER)
    return Piece(part.name, part.size, part.low, part.high, colour, SOURCES[part.source], part.note)


def verdict_words(verdict: Verdict) -> tuple[str, str]:
    """A verdict as a person reads it, and its tone."""
    return VERDICTS[verdict]


def summary(report: FitReport | None) -> str:
    """The answer in one line: needed, room and what is left on the fullest device."""
    stacks = stacks_of(report)
    if not stacks:
        return ""
    fullest = max(stacks, key=lambda stack: stack.needed - stack.room)
    where = f" on each of {len(stacks)} GPUs" if len(stacks) > 1 else ""
    return (
        f"{formats.size(fullest.needed)} needed{where}  ·  {formats.size(fullest.room)} may be used"
        f"  ·  {fullest.rest}"
    )
