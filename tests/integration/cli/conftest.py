"""A host of canned answers: what these tests are about is the process of the command."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.fake_host import FakeHost, fake_host


@pytest.fixture
def host(home: Path) -> Iterator[FakeHost]:
    """Run a fake host where the command line looks."""
    with fake_host(home) as running:
        yield running
