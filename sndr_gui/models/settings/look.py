"""The rows of Settings that are the window's own: its look, each with its choices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sndr_gui.kit.look.choices import SCALES, Accent, Density, Motion, ThemeChoice


@dataclass(frozen=True)
class LookEntry:
    """One row: the field of `WindowSettings` that it changes, and the choices with their titles."""

    name: str
    label: str
    help: str
    choices: Sequence[tuple[str, object]]


LOOK_ENTRIES = (
    LookEntry(
        "theme",
        "Theme",
        "System follows the desktop, also in its wish for contrast.",
        (
            ("System", ThemeChoice.SYSTEM),
            ("Light", ThemeChoice.LIGHT),
            ("Dark", ThemeChoice.DARK),
            ("High contrast", ThemeChoice.HIGH_CONTRAST),
        ),
    ),
    LookEntry(
        "accent",
        "Accent",
        "The colour of what is chosen. Text stays readable in each.",
        tuple((accent.value.capitalize(), accent) for accent in Accent),
    ),
    LookEntry(
        "density",
        "Density",
        "The room around controls, cards and rows.",
        (("Comfortable", Density.COMFORTABLE), ("Compact", Density.COMPACT)),
    ),
    LookEntry(
        "motion",
        "Motion",
        "Reduced: no cursor blinks, no menu slides.",
        (("System", Motion.SYSTEM), ("Reduced", Motion.REDUCED)),
    ),
    LookEntry(
        "scale",
        "Scale",
        "Of everything, over the system's own.",
        tuple((f"{scale} %", scale) for scale in SCALES),
    ),
)


def look_entry(name: str) -> LookEntry:
    """Return the row of a field."""
    return next(entry for entry in LOOK_ENTRIES if entry.name == name)
