"""Every figure on a card names the file that it is from; one of this project's holds it."""

import re
from pathlib import Path

import pytest

from engine_host.protocol.catalog import Evidence
from tests.shipped_catalog import shipped

ROOT = Path(__file__).parents[3]
CATALOG = shipped()
EVIDENCE = [
    (name, place, one)
    for name in CATALOG.ids()
    for place, one in enumerate(CATALOG.preset(name).card.evidence)
]
FIGURES = [pytest.param(name, one, id=f"{name}-{place}") for name, place, one in EVIDENCE]
LINES = (
    (ROOT / "docs" / "figures.md").read_text(encoding="utf-8").partition("## Public files")[2].splitlines()
)
PUBLIC = [
    tuple(cell.strip() for cell in line.strip("|").split("|"))
    for line in LINES
    if line.startswith(tuple(f"| {name} |" for name in CATALOG.ids()))
]
FILE = re.compile(r"(?<![\w/])[\w.-]+(?:/[\w.-]+)*\.(?:ya?ml|md|json|py)\b")


def held(text: str, value: float) -> bool:
    """Whether a text has the figure: as a whole number where it is one, with or without thousands."""
    forms = {f"{value:g}", f"{value:,g}", f"{value}", f"{value:,.0f}" if value == int(value) else f"{value}"}
    return any(re.search(rf"(?<![\d.,]){re.escape(form)}(?![\d]|[.,]\d)", text) for form in forms)


@pytest.mark.parametrize(("name", "one"), FIGURES)
def test_a_figure_names_its_file_and_stands_in_it(name: str, one: Evidence) -> None:
    files = FILE.findall(one.source)
    assert files, f"{name}: {one.source!r} names no file"
    if one.value is None:
        return
    (file, *_) = files
    if "https://" not in one.source or one.source.startswith("docs/"):
        assert (ROOT / file).is_file(), f"{name}: {file}"
        assert held((ROOT / file).read_text(encoding="utf-8"), one.value), (
            f"{name}: {one.value} is not in {file}"
        )
        return
    assert (name, file, True) in [(row[0], row[2], held(row[1], one.value)) for row in PUBLIC], (
        f"{name}: {file}"
    )


def test_every_line_of_a_public_file_is_quoted_by_a_card() -> None:
    quoted = {(name, f"{one.value:g}") for name, _, one in EVIDENCE if one.value is not None}
    assert {(row[0], row[1]) for row in PUBLIC} <= quoted


def test_hashes_and_sizes_are_those_that_were_read() -> None:
    read = (ROOT / "docs" / "figures.md").read_text(encoding="utf-8")
    for model in ("qwen3.6-27b", "qwen3.6-35b-a3b"):
        for variant in CATALOG.models[model].entry.variants:
            if variant.revision is not None:
                assert f"| {variant.revision[:8]} |" in read, variant.id
            for file in variant.files:
                assert file.size is not None, file.name
                assert f"| {file.size:,} | {file.sha256[:8] + '…' if file.sha256 else 'not known'} |" in read


def test_what_counts_as_the_same_figure() -> None:
    assert held("| three streams | 212.76 tok/s |", 212.76)
    assert held("a prompt of 29,600 tokens", 29_600)
    assert not held("| 212.765 |", 212.76)
    assert not held("| 1675 |", 675)
