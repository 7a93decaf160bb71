"""Every figure on a card names the file that it is from; one of this project's holds it."""

import re
from pathlib import Path

import pytest

from engine_host.catalog.index import Catalog
from engine_host.catalog.reader import Place, Reader
from engine_host.core.package_data import presets
from engine_host.protocol.catalog import Evidence
from engine_host.protocol.presets import EntryOrigin

ROOT = Path(__file__).parents[3]
CATALOG: Catalog = Reader((Place(presets(), EntryOrigin.PROGRAM, "presets"),)).read()
FIGURES = [
    pytest.param(name, one, id=f"{name}-{place}")
    for name in CATALOG.ids()
    for place, one in enumerate(CATALOG.preset(name).card.evidence)
]
FILE = re.compile(r"(?<![\w/])[\w.-]+(?:/[\w.-]+)*\.(?:ya?ml|md|json|py)\b")


def held(text: str, value: float) -> bool:
    """Whether a text has the figure: as a whole number where it is one, with or without thousands."""
    forms = {f"{value:g}", f"{value:,g}", f"{value}", f"{value:,.0f}" if value == int(value) else f"{value}"}
    return any(re.search(rf"(?<![\d.,]){re.escape(form)}(?![\d]|[.,]\d)", text) for form in forms)


@pytest.mark.parametrize(("name", "one"), FIGURES)
def test_a_figure_names_its_file(name: str, one: Evidence) -> None:
    files = FILE.findall(one.source)
    assert files, f"{name}: {one.source!r} names no file"
    public = "https://" in one.source and not one.source.startswith("docs/")
    if public or one.value is None:
        return
    (file, *_) = files
    assert (ROOT / file).is_file(), f"{name}: {file}"
    assert held((ROOT / file).read_text(encoding="utf-8"), one.value), f"{name}: {one.value} is not in {file}"


def test_what_counts_as_the_same_figure() -> None:
    assert held("| three streams | 212.76 tok/s |", 212.76)
    assert held("a prompt of 29,600 tokens", 29_600)
    assert not held("| 212.765 |", 212.76)
    assert not held("| 1675 |", 675)
