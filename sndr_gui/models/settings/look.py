"""The rows of Settings that are the window's own: its look and its language, each with its choices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine_host.protocol.language import LANGUAGES, SYSTEM, percent, tr
from sndr_gui.kit.look.choices import SCALES, Accent, Density, Motion, ThemeChoice
from sndr_gui.kit.setting_words import word_of


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
        tr("Theme"),
        tr("System follows the desktop, also in its wish for contrast."),
        (
            (tr("System"), ThemeChoice.SYSTEM),
            (tr("Light"), ThemeChoice.LIGHT),
            (tr("Dark"), ThemeChoice.DARK),
            (tr("High contrast"), ThemeChoice.HIGH_CONTRAST),
        ),
    ),
    LookEntry(
        "accent",
        tr("Accent"),
        tr("The colour of what is chosen. Text stays readable in each."),
        tuple((word_of(accent.value.capitalize()), accent) for accent in Accent),
    ),
    LookEntry(
        "density",
        tr("Density"),
        tr("The room around controls, cards and rows."),
        ((tr("Comfortable"), Density.COMFORTABLE), (tr("Compact"), Density.COMPACT)),
    ),
    LookEntry(
        "motion",
        tr("Motion"),
        tr("Reduced: no cursor blinks, no menu slides."),
        ((tr("System"), Motion.SYSTEM), (tr("Reduced"), Motion.REDUCED)),
    ),
    LookEntry(
        "scale",
        tr("Scale"),
        tr("Of everything, over the system's own."),
        tuple((percent(str(scale)), scale) for scale in SCALES),
    ),
    LookEntry(
        "language",
        tr("Language"),
        tr("Of the window. Commands, logs and answers of models stay as they are."),
        ((tr("System"), SYSTEM), *((name, code) for code, name in LANGUAGES.items())),
    ),
)
AT_START = ("scale", "language")
"""Rows that take effect at the next start."""


def look_entry(name: str) -> LookEntry:
    """Return the row of a field."""
    return next(entry for entry in LOOK_ENTRIES if entry.name == name)
