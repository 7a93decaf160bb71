"""No part of a page is a window of its own for a moment: that paints rubbish over what is shown."""

from __future__ import annotations

import asyncio

import pytest
from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication, QWidget

from engine_host.protocol.engines import EngineState
from sndr_gui.views.window.pages import PAGES
from tests.views.conftest import Stage
from tests.views.samples import host as samples


class _Watch(QObject):
    """Notes every widget that becomes a window of its own."""

    def __init__(self, window: QWidget) -> None:
        super().__init__()
        self._window = window
        self.seen: list[str] = []

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if (
            event.type() == QEvent.Type.Show
            and isinstance(watched, QWidget)
            and watched.isWindow()
            and watched is not self._window
        ):
            self.seen.append(f"{type(watched).__name__} {watched.accessibleName()}".strip())
        return False


@pytest.mark.parametrize("running", [0, 1, 2])
async def test_no_part_of_a_page_is_shown_before_it_stands_on_its_page(stage: Stage, running: int) -> None:
    for number in range(running):
        engine = samples.engine(EngineState.READY)
        name = f"sndr-demo-{number}"
        stage.host.set_engine(engine.model_copy(update={"id": f"e{number}", "name": name}))
    await stage.until(lambda: len(stage.state.engines) == running)
    watch = _Watch(stage.window)
    application = QApplication.instance()
    assert application is not None
    application.installEventFilter(watch)
    seen: dict[str, list[str]] = {}
    try:
        for page in PAGES:
            stage.window.go(page.name)
            await asyncio.sleep(0.02)
            if watch.seen:
                seen[page.name], watch.seen = watch.seen, []
    finally:
        application.removeEventFilter(watch)
    assert not seen
