"""The settings that are the window's own: its look, its language, its habits, each with its choices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine_host.protocol.language import LANGUAGES, SYSTEM, percent, tr
from sndr_gui.kit.look.choices import SCALES, Accent, Density, Motion, ThemeChoice
from sndr_gui.kit.setting_words import word_of
from sndr_gui.kit.settings import OnClose


@dataclass(frozen=True)
class WindowEntry:
    """One row: the field of `WindowSettings` that it changes, and the choices with their titles.

    `words` find it in the palette beside its label, in English and, for the language, in each of them.
    """

    name: str
    label: str
    help: str
    choices: Sequence[tuple[str, object]] = ()
    words: str = ""


_SWITCH = ((tr("Switched on"), True), (tr("Switched off"), False))
_SEEN = "colours appearance look contrast accessibility"


LOOK_ENTRIES = (
    WindowEntry(
        "theme",
        tr("Theme"),
        tr("System follows the desktop, also in its wish for contrast."),
        (
            (tr("System"), ThemeChoice.SYSTEM),
            (tr("Light"), ThemeChoice.LIGHT),
            (tr("Dark"), ThemeChoice.DARK),
            (tr("High contrast"), ThemeChoice.HIGH_CONTRAST),
        ),
        f"{_SEEN} mode night day",
    ),
    WindowEntry(
        "accent",
        tr("Accent"),
        tr("The colour of what is chosen. Text stays readable in each."),
        tuple((word_of(accent.value.capitalize()), accent) for accent in Accent),
        _SEEN,
    ),
    WindowEntry(
        "density",
        tr("Density"),
        tr("The room around controls, cards and rows."),
        ((tr("Comfortable"), Density.COMFORTABLE), (tr("Compact"), Density.COMPACT)),
        f"{_SEEN} spacing room",
    ),
    WindowEntry(
        "motion",
        tr("Motion"),
        tr("Reduced: no cursor blinks, no menu slides."),
        ((tr("System"), Motion.SYSTEM), (tr("Reduced"), Motion.REDUCED)),
        f"{_SEEN} animation animations blink",
    ),
    WindowEntry(
        "scale",
        tr("Scale"),
        tr("Of everything, over the system's own."),
        tuple((percent(str(scale)), scale) for scale in SCALES),
        f"{_SEEN} zoom size font larger bigger smaller",
    ),
    WindowEntry(
        "language",
        tr("Language"),
        tr("Of the window. Commands, logs and answers of models stay as they are."),
        ((tr("System"), SYSTEM), *((name, code) for code, name in LANGUAGES.items())),
        "language locale translation english german russian chinese japanese sprache язык 语言 言語",
    ),
)
OWN_ENTRIES = (
    WindowEntry(
        "on_close",
        tr("Engines on closing"),
        tr("What becomes of engines that would end with the window."),
        ((tr("Ask"), OnClose.ASK), (tr("Keep running"), OnClose.KEEP), (tr("Stop"), OnClose.END)),
        "close quit exit",
    ),
    WindowEntry(
        "tray",
        tr("Icon in the tray"),
        tr("State, start, stop, the endpoint; the window stays as it is."),
        _SWITCH,
        "background minimise",
    ),
    WindowEntry(
        "desktop_notices",
        tr("Notices on the desktop"),
        tr("While you look elsewhere: engines that are ready or failed, alerts, work that ended."),
        _SWITCH,
        "notifications",
    ),
    WindowEntry(
        "at_login",
        tr("Start at login"),
        tr("In the background, with a preset or without."),
        words="autostart boot",
    ),
    WindowEntry(
        "keep_chats",
        tr("Keep conversations"),
        tr("In files of this machine that only you can read, the newest 500; nothing is sent anywhere."),
        _SWITCH,
        "chat history privacy",
    ),
)
"""What the window does besides; `at_login` is kept by the desktop and chosen on the page."""
AT_START = ("scale", "language")
"""Rows that take effect at the next start."""


def window_entry(name: str) -> WindowEntry:
    """Return the row of a field."""
    return next(entry for entry in (*LOOK_ENTRIES, *OWN_ENTRIES) if entry.name == name)
