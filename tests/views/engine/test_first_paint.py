"""The first picture of the Engine page: nothing on it is squeezed while it takes its place."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication, QLabel

from engine_host.protocol.engines import EngineState
from sndr_gui.views.engine.page import EngineView
from sndr_gui.views.widgets.cards import Card
from tests.views.conftest import Stage
from tests.views.samples import engines as engine_samples


class Paintings(QObject):
    """Notes cards that are painted over others, and texts that are painted where they have no room."""

    def __init__(self) -> None:
        super().__init__()
        self.painted: set[QObject] = set()
        self.wrong: set[str] = set()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is not QEvent.Type.Paint:
            return False
        if isinstance(watched, Card):
            self.painted.add(watched)
            outer = watched.parentWidget()
            beside = outer.findChildren(Card) if outer is not None else []
            for other in beside:
                stands_there = other is not watched and other.parentWidget() is outer and other.isVisible()
                if stands_there and other.geometry().intersects(watched.geometry()):
                    self.wrong.add(f"{watched.title.text()} over {other.title.text()}")
        if isinstance(watched, QLabel) and watched.text():
            letters = watched.fontMetrics()
            value = watched.objectName() == "value"
            narrow = value and watched.width() < letters.horizontalAdvance(watched.text())
            if narrow or watched.height() < letters.height():
                self.wrong.add(f"{watched.text()} has {watched.width()} x {watched.height()}")
        return False


@pytest.fixture
def paintings(dressed: QApplication) -> Iterator[Paintings]:
    made = Paintings()
    dressed.installEventFilter(made)
    yield made
    dressed.removeEventFilter(made)


async def test_nothing_is_squeezed_when_an_engine_comes_to_the_open_page(
    stage: Stage, paintings: Paintings
) -> None:
    stage.window.go("engine")
    page = stage.window.page
    assert isinstance(page, EngineView)
    await stage.until(lambda: page.empty.isVisible())
    stage.host.set_engine(engine_samples.vllm(EngineState.READY))
    await stage.until(lambda: {page.rates, page.requests, *page.cards[:4]} <= paintings.painted)
    await stage.until(lambda: page.rates.graph is not None)
    assert not paintings.wrong
