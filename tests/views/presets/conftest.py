"""The real catalogue behind the fake host, for the tests of the Presets page."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.views.conftest import Stage
from tests.views.fakes.real_catalog import RealCatalog


@pytest.fixture
def catalogue(stage: Stage, tmp_path: Path) -> Iterator[RealCatalog]:
    """The real catalogue behind the host."""
    made = RealCatalog(stage, tmp_path / "host")
    yield made
    made.store.close()
