"""Compare the needs of a preset with hardware of the catalogue or of the driver."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from engine_host.core.findings.table import finding
from engine_host.protocol.catalog import HardwareEntry, PresetEntry
from engine_host.protocol.errors import Fix
from engine_host.protocol.host import Gpu
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import Finding


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
        there = {0: "this machine has none", 1: "there is one"}.get(count, f"there are {count}")
        yield _lacking("preset.gpus", preset, needs=needs.gpus, has=count, gpus=needs.devices, there=there)
    if card is None or not needs.gpus:
        return
    if needs.vram_gib is not None and card.vram_mib / 1024 < needs.vram_gib * _NOMINAL:
        has = round(card.vram_mib / 1024, 1)
        yield _lacking("preset.vram", preset, needs=needs.vram_gib, has=has, card=card.title)
    if needs.sm is not None and card.sm is not None and capability(card.sm) < capability(needs.sm):
        yield _lacking("preset.sm", preset, needs=needs.sm, has=card.sm, card=card.title)
    absent = [name for name in needs.formats if card.formats is not None and name not in card.formats]
    if absent:
        has_formats = list(card.formats or ())
        yield _lacking(
            "preset.formats",
            preset,
            needs=list(needs.formats),
            has=has_formats,
            absent=absent,
            card=card.title,
        )
    if needs.nvlink and card.nvlink is False:
        yield _lacking("preset.nvlink", preset, needs=True, has=False, card=card.title)
    if needs.known_good and card.hardware not in needs.known_good:
        yield finding(
            "preset.unproven",
            evidence={"known_good": list(needs.known_good), "hardware": card.hardware},
            card=card.title,
            preset=preset.id,
        )


# Drivers report up to 2 % less than the size that a card is sold with.
_NOMINAL = 0.97


def capability(sm: str) -> tuple[int, int]:
    """A compute capability as numbers that compare."""
    major, _, minor = sm.partition(".")
    return int(major), int(minor)


def _lacking(key: str, preset: PresetEntry, **values: Any) -> Finding:
    fix = Fix(text="See which presets work on this hardware.", command="sndr presets verdicts")
    if preset.card.fallback is not None and key != "preset.gpus":
        fix = Fix(
            text=tr("The preset to fall back to is {fallback}.", fallback=preset.card.fallback),
            command=f"sndr presets show {preset.card.fallback}",
        )
    return finding(key, fix=fix, **values)
