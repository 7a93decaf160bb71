"""Rows of the table of patches: versions and facets."""

import pytest

from sndr_gui.models.patches.rows import HERE, Facets, PatchRow, covers, passes
from tests.views.samples import host as samples


@pytest.mark.parametrize(
    ("version", "inside"), [("0.32.0", True), ("0.26.0", True), ("0.33.0", False), ("", True)]
)
def test_a_range_is_pep_440_and_an_unknown_version_hides_nothing(version: str, inside: bool) -> None:
    assert covers(samples.patch(1), version) is inside


def test_a_range_that_cannot_be_read_hides_nothing() -> None:
    patch = samples.patch(1)
    broken = patch.model_copy(
        update={"applies_to": patch.applies_to.model_copy(update={"vllm": "around 0.32"})}
    )
    assert covers(broken, "0.32.0")


def test_facets_narrow_together() -> None:
    row = PatchRow(samples.patch(2), "applied", "", 1.0)
    assert passes(row, Facets(range=HERE), "0.32.0")
    assert not passes(row, Facets(range=HERE), "0.31.0")
    assert not passes(row, Facets(range=HERE, state="failed"), "0.32.0")
