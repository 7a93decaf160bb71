"""The colours of each theme with each accent, and the pairs of text and ground that stay readable."""

from dataclasses import dataclass, replace
from functools import cache

from sndr_gui.kit.look.choices import Accent


@dataclass(frozen=True)
class Tokens:
    """The twelve colours of one theme, those of graph lines, and those of parts of a device's memory.

    `shade`: light or dark, which drawn arrows and ticks go by. `strong`: a theme of high contrast.
    """

    shade: str
    bg: str
    surface: str
    raised: str
    line: str
    text: str
    muted: str
    accent: str
    on_accent: str
    accent_soft: str
    good: str
    warn: str
    bad: str
    series: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    strong: bool = False


LIGHT = Tokens(
    shade="light",
    bg="#F6F7F9",
    surface="#FFFFFF",
    raised="#F0F2F5",
    line="#E2E5EA",
    text="#171A21",
    muted="#596070",
    accent="#3B5BDB",
    on_accent="#FFFFFF",
    accent_soft="#E8EDFD",
    good="#146C45",
    warn="#8A5100",
    bad="#BE2020",
    series=("#3B5BDB", "#0A8F68", "#D9480F", "#9C36B5", "#C2255C", "#0B7285", "#5C940D", "#495057"),
    parts=("#4C6EF5", "#12B886", "#82C91E", "#FD7E14", "#BE4BDB", "#FAB005", "#E64980", "#15AABF", "#A9744F"),
)
DARK = Tokens(
    shade="dark",
    bg="#0F1115",
    surface="#171A21",
    raised="#1F232C",
    line="#2A2F3A",
    text="#E7EAF0",
    muted="#949CAB",
    accent="#7C93FF",
    on_accent="#0B0E16",
    accent_soft="#222A4A",
    good="#3DD39A",
    warn="#F0B35B",
    bad="#FF7B7B",
    series=("#7C93FF", "#3DD39A", "#FFA45C", "#D58BF5", "#FF8FB8", "#4DD0E1", "#B5D96B", "#CED4DA"),
    parts=("#7C93FF", "#3DD39A", "#A9E34B", "#FFA45C", "#D58BF5", "#FFD43B", "#F783AC", "#66D9E8", "#D0A27F"),
)
STRONG_LIGHT = Tokens(
    shade="light",
    bg="#FFFFFF",
    surface="#FFFFFF",
    raised="#F2F2F2",
    line="#4A4A4A",
    text="#000000",
    muted="#333333",
    accent="#0A2A9E",
    on_accent="#FFFFFF",
    accent_soft="#DDE5FF",
    good="#004D2E",
    warn="#5C3300",
    bad="#8A0010",
    series=("#0A2A9E", "#00573A", "#8A2C00", "#6A1B82", "#8A1241", "#004D5C", "#3A5F00", "#343A40"),
    parts=("#0A2A9E", "#087F5B", "#4C7A0B", "#B84A00", "#862E9C", "#8A6400", "#A61E4D", "#0B7285", "#6B4423"),
    strong=True,
)
STRONG_DARK = Tokens(
    shade="dark",
    bg="#000000",
    surface="#000000",
    raised="#161616",
    line="#B8B8B8",
    text="#FFFFFF",
    muted="#E0E0E0",
    accent="#A8B8FF",
    on_accent="#000000",
    accent_soft="#10194A",
    good="#5CF2B0",
    warn="#FFC85C",
    bad="#FFB0B0",
    series=("#A8B8FF", "#5CF2B0", "#FFB98A", "#E5B3FF", "#FFB0D4", "#7FE9F5", "#CDEB8B", "#FFFFFF"),
    parts=("#A8B8FF", "#5CF2B0", "#C0EB75", "#FFB98A", "#E5B3FF", "#FFE066", "#FFB0D4", "#7FE9F5", "#E0BC9C"),
    strong=True,
)
THEMES = {
    "light": LIGHT,
    "dark": DARK,
    "high contrast, light": STRONG_LIGHT,
    "high contrast, dark": STRONG_DARK,
}

# For each accent the colour itself, and the soft ground of what is chosen, in the order of THEMES.
_ACCENTS = {
    Accent.VIOLET: (
        ("#7A3FD1", "#F1E9FC"),
        ("#B692FF", "#2E2450"),
        ("#4A148C", "#EEE2FC"),
        ("#D2BBFF", "#2A1452"),
    ),
    Accent.TEAL: (
        ("#0A6E76", "#DFF3F3"),
        ("#45CBD1", "#10363B"),
        ("#004A50", "#D6F3F3"),
        ("#66E8EE", "#062A30"),
    ),
    Accent.ORANGE: (
        ("#A94400", "#FCEBDD"),
        ("#FFA060", "#43291A"),
        ("#6B2A00", "#FFE6D1"),
        ("#FFB98A", "#45220A"),
    ),
    Accent.PINK: (
        ("#B8256E", "#FBE7F0"),
        ("#FF8CBF", "#462337"),
        ("#7A0A45", "#FFE0EE"),
        ("#FFB0D4", "#481430"),
    ),
    Accent.GRAPHITE: (
        ("#475063", "#E6E9EF"),
        ("#B9C2D3", "#2D3442"),
        ("#1F2633", "#E0E4EB"),
        ("#E2E8F2", "#2A303C"),
    ),
}


@cache
def with_accent(theme: Tokens, accent: Accent) -> Tokens:
    """Return a theme in another accent; the theme itself for its own, which is blue."""
    if accent not in _ACCENTS:
        return theme
    colour, soft = _ACCENTS[accent][list(THEMES.values()).index(theme)]
    return replace(theme, accent=colour, accent_soft=soft)


_GROUNDS = ("bg", "surface", "raised")
TEXT_PAIRS = (
    *((name, ground) for name in ("text", "muted", "accent", "good", "warn", "bad") for ground in _GROUNDS),
    # What is chosen in a list or a table, and the words in a bubble.
    *((name, "accent_soft") for name in ("text", "muted", "accent", "good", "warn", "bad")),
    ("on_accent", "accent"),
)
"""Every text that the style sheet or a delegate puts on a ground: by the tokens' names."""
SHAPE_PAIRS = tuple((name, ground) for name in ("accent", "muted", "bad") for ground in _GROUNDS)
"""What has no words and is to be seen all the same: frames of the focus, of a check box, of a wrong value."""
