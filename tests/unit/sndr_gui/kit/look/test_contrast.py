"""Contrast is measured, by WCAG 2.2, of every pair of text and ground, in all themes and accents."""

import re
from itertools import product
from pathlib import Path

import pytest

from sndr_gui.kit.look import colours
from sndr_gui.kit.look.choices import Accent
from sndr_gui.kit.look.colours import SHAPE_PAIRS, TEXT_PAIRS, THEMES, Tokens, with_accent

LOOK = Path(colours.__file__).parent
AA, AAA, SHAPE = 4.5, 7.0, 3.0
EVERY = [
    pytest.param(with_accent(base, accent), id=f"{name}-{accent}")
    for (name, base), accent in product(THEMES.items(), Accent)
]


def luminance(colour: str) -> float:
    """The relative luminance of `#RRGGBB`."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours, from 1 to 21."""
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def below(tokens: Tokens, pairs: tuple[tuple[str, str], ...], least: float) -> dict[tuple[str, str], float]:
    """The pairs that are not told apart well enough, with their ratio."""
    measured = {pair: contrast(getattr(tokens, pair[0]), getattr(tokens, pair[1])) for pair in pairs}
    return {pair: round(ratio, 2) for pair, ratio in measured.items() if ratio < least}


def test_the_measure_is_that_of_wcag() -> None:
    assert contrast("#FFFFFF", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("tokens", EVERY)
def test_text_is_readable_and_shapes_are_seen(tokens: Tokens) -> None:
    assert below(tokens, TEXT_PAIRS, AAA if tokens.strong else AA) == {}
    assert below(tokens, SHAPE_PAIRS, SHAPE) == {}
    lines = [colour for colour in tokens.series if contrast(colour, tokens.surface) < SHAPE]
    assert not lines, "the lines of graphs"
    if tokens.strong:
        # Every control has an edge that is seen, and every part of a device's memory.
        assert contrast(tokens.line, tokens.surface) >= AA
        assert [colour for colour in tokens.parts if contrast(colour, tokens.surface) < SHAPE] == []


@pytest.mark.parametrize("sheet", ["style", "strong"])
def test_every_pair_of_the_style_sheet_is_measured(sheet: str) -> None:
    text = (LOOK / f"{sheet}.qss").read_text()
    assert not re.search(r"#[0-9A-Fa-f]{6}\b", text), "colours have names"
    rules = re.findall(r"\{([^{}$]*\$[a-z_]+[^{}]*)\}", re.sub(r"\$\{\w+\}", "0", text))
    found = set()
    for body in rules:
        ink = re.search(r"(?<![-\w])color: \$(\w+)", body)
        ground = re.search(r"(?<![-\w])background: \$(\w+)", body)
        if ground:
            found.add((ink.group(1) if ink else "text", ground.group(1)))
        chosen = re.search(r"selection-background-color: \$(\w+); selection-color: \$(\w+)", body)
        if chosen:
            found.add((chosen.group(2), chosen.group(1)))
    # Grounds that carry no words: a rule, a handle, the chunk of a bar, a box that is ticked.
    wordless = {("text", "line"), ("text", "muted"), ("text", "accent")}
    assert found - wordless <= set(TEXT_PAIRS)
