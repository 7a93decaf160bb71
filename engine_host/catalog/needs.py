"""Compare the needs of a preset with hardware of the catalogue or of the driver."""

from collections.abc import Iterator
from dataclasses import dataclass

from engine_host.protocol.base import Severity
from engine_host.protocol.catalog import HardwareEntry, PresetEntry
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.host import Gpu
from engine_host.protocol.plans import Finding


@dataclass(frozen=True, slots=True)
class Card:
    """One GPU by what a preset can need of it; None is not known, and nothing is missed then."""

    title: str
    vram_mib: float
    hardware: str | None = None
    sm: str | None = None
    formats: tuple[str, ...] | None = None
    nvlink: bool | None = None


def card_of(entry: HardwareEntry) -> Card:
    """A GPU of the catalogue."""
    return Card(
        entry.title,
        entry.vram_mib.value,
        entry.id,
        entry.sm,
        entry.formats,
        None if entry.nvlink is None else entry.nvlink is not False,
    )


def card_seen(gpu: Gpu) -> Card:
    """A GPU that the catalogue does not know."""
    return Card(gpu.name, gpu.memory_total / 2**20, sm=gpu.compute_capability)


def findings(preset: PresetEntry, card: Card | None, count: int | None) -> Iterator[Finding]:
    """Yield missing requirements (errors) and untried hardware (notes); nothing without a `count`."""
    needs = preset.needs
    if count is None:
        return
    if count < needs.gpus:
        gpus = "a GPU" if needs.gpus == 1 else f"{needs.gpus} GPUs"
        there = "there is none" if not count else "there is one" if count == 1 else f"there are {count}"
        message = f"It needs {gpus}; {there}."
        yield _lacking("gpus", message, Reason.ENGINE_UNUSABLE, preset, needs=needs.gpus, has=count)
    if card is None or not needs.gpus:
        return
    if needs.vram_gib is not None and card.vram_mib / 1024 < needs.vram_gib * _NOMINAL:
        has = round(card.vram_mib / 1024, 1)
        message = f"It needs {needs.vram_gib:g} GiB of memory on each GPU; {card.title} has {has:g}."
        yield _lacking("vram", message, Reason.OUT_OF_MEMORY, preset, needs=needs.vram_gib, has=has)
    if needs.sm is not None and card.sm is not None and capability(card.sm) < capability(needs.sm):
        message = f"It needs compute capability {needs.sm}; {card.title} has {card.sm}."
        yield _lacking("sm", message, Reason.UNSUPPORTED, preset, needs=needs.sm, has=card.sm)
    absent = [name for name in needs.formats if card.formats is not None and name not in card.formats]
    if absent:
        message = f"It needs arithmetic in {', '.join(absent)}, which {card.title} does not have."
        evidence = {"needs": list(needs.formats), "has": list(card.formats or ())}
        yield _lacking("formats", message, Reason.UNSUPPORTED, preset, **evidence)
    if needs.nvlink and card.nvlink is False:
        message = f"It needs NVLink, which {card.title} does not have."
        yield _lacking("nvlink", message, Reason.UNSUPPORTED, preset, needs=True, has=False)
    if needs.known_good and card.hardware not in needs.known_good:
        yield Finding(
            id="preset.unproven",
            severity=Severity.INFO,
            message=f"Nobody has reported it on {card.title}.",
            fix=Fix(
                text="Compare what it does here with its figures.", command=f"sndr presets show {preset.id}"
            ),
            evidence={"known_good": list(needs.known_good), "hardware": card.hardware},
        )


# Drivers report up to 2 % less than the size that a card is sold with.
_NOMINAL = 0.97


def capability(sm: str) -> tuple[int, int]:
    """A compute capability as numbers that compare."""
    major, _, minor = sm.partition(".")
    return int(major), int(minor)


def _lacking(name: str, message: str, reason: Reason, preset: PresetEntry, **evidence: object) -> Finding:
    fix = Fix(text="See which presets work on this hardware.", command="sndr presets verdicts")
    if preset.card.fallback is not None and name != "gpus":
        fix = Fix(
            text=f"The preset to fall back to is {preset.card.fallback}.",
            command=f"sndr presets show {preset.card.fallback}",
        )
    return Finding(
        id=f"preset.{name}",
        severity=Severity.ERROR,
        message=message,
        reason=reason,
        fix=fix,
        evidence=evidence,
    )
