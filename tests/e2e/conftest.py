"""The display, the window, and a model that answers slowly enough to be interrupted."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine_host.bench.random_model import Shape, write_random_model
from tests.e2e.desktop import ROOT, Desktop, Gui, desktop, window

# 80 million parameters: some hundred tokens a second on two cores, so an answer of 2,000 takes a while.
SLOW = Shape(layers=12, width=768, feed_forward=2048, heads=12, kv_heads=4, head_size=64, vocabulary=8192)


@pytest.fixture(scope="session")
def screen() -> Iterator[Desktop]:
    """One display for all tests."""
    with desktop() as made:
        yield made


@pytest.fixture
def gui(screen: Desktop, home: Path, request: pytest.FixtureRequest) -> Iterator[Gui]:
    """The window, freshly started."""
    picture = ROOT / "build" / "e2e" / f"{request.node.name}.png"
    with window(screen, home, picture) as started:
        yield started


@pytest.fixture(scope="session")
def slow_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose answers do not end by themselves."""
    return write_random_model(tmp_path_factory.mktemp("slow") / "slow-model.gguf", SLOW)
