"""A small catalogue for each test."""

from pathlib import Path

import pytest

from tests.unit.catalog.small import Small


@pytest.fixture
def small(tmp_path: Path) -> Small:
    """A catalogue of one engine, GPU, model, profile and preset."""
    return Small(tmp_path)
