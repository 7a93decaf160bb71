"""The choices of the window's look; known without Qt, for the scale is needed before Qt starts."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

SCALES = (100, 110, 125, 150, 175, 200)
"""In per cent of the system's own scale."""
SCALE_VARIABLE = "QT_SCALE_FACTOR"


class ThemeChoice(StrEnum):
    """The colours that the window uses."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"
    HIGH_CONTRAST = "high-contrast"


class Accent(StrEnum):
    """The colour of what is chosen, what has the focus, and the one button that matters."""

    BLUE = "blue"
    VIOLET = "violet"
    TEAL = "teal"
    ORANGE = "orange"
    PINK = "pink"
    GRAPHITE = "graphite"


class Density(StrEnum):
    """The room around controls, cards and rows."""

    COMFORTABLE = "comfortable"
    COMPACT = "compact"


class Motion(StrEnum):
    """The freedom of menus to slide, and of the cursor to blink."""

    SYSTEM = "system"
    REDUCED = "reduced"


@dataclass(frozen=True)
class Look:
    """Everything of the look that is applied while the window is open."""

    theme: ThemeChoice = ThemeChoice.SYSTEM
    accent: Accent = Accent.BLUE
    density: Density = Density.COMFORTABLE
    motion: Motion = Motion.SYSTEM


def scale_factor(percent: int, environment: Mapping[str, str]) -> str | None:
    """Return the value of `QT_SCALE_FACTOR` for a scale; None where it stays as it is.

    A factor that the environment has already is the system's own, and is multiplied.
    """
    if percent == 100:
        return None
    try:
        given = float(environment.get(SCALE_VARIABLE, "") or 1)
    except ValueError:
        given = 1.0
    return f"{given * percent / 100:.4g}"


def largest_scale(percent: int, room: tuple[int, int], least: tuple[int, int]) -> int:
    """Return the largest scale at which the smallest window is whole on the screen; at least 100.

    `room` is the screen's, in the units of the scale in force, which is `percent`.
    """
    most = percent * min(have / need for have, need in zip(room, least, strict=True))
    return max(scale for scale in SCALES if scale <= max(100, most))
