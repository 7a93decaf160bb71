"""Every page in the pseudo-language; `test_pseudo.py` runs it in a process where that is installed first."""

import asyncio
from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QComboBox, QHeaderView, QLabel, QLineEdit, QWidget

from engine_host.protocol.engines import EngineState
from tests.views.conftest import Stage
from tests.views.samples import host as samples
from tests.views.window.cut_text import cut_texts
from tests.views.window.test_main import NAMES


def said(page: QWidget) -> Iterator[str]:
    """Yield every text that a page shows or tells."""
    for part in page.findChildren(QWidget):
        if not part.isVisible():
            continue
        yield part.accessibleName()
        yield part.toolTip()
        if isinstance(part, QLabel | QAbstractButton):
            yield part.text()
        if isinstance(part, QLineEdit):
            yield part.placeholderText()
        if isinstance(part, QComboBox):
            yield from (part.itemText(place) for place in range(part.count()))
        if isinstance(part, QHeaderView) and (model := part.model()) is not None:
            for place in range(part.count()):
                yield str(model.headerData(place, Qt.Orientation.Horizontal) or "")


@pytest.mark.parametrize("page", NAMES)
async def test_pages(stage: Stage, page: str) -> None:
    stage.host.set_engine(samples.engine(EngineState.READY))
    await stage.until(lambda: stage.state.engines)
    stage.window.resize(900, 600)
    plain: dict[str, str] = {}
    cut: dict[str, list[str]] = {}
    for name in (page,):
        stage.window.go(name)
        found = []
        for turn in range(8):
            stage.window.grab()
            await asyncio.sleep(0.02)
            if turn > 1 and not (found := list(cut_texts(stage.window.page))):
                break
        if found:
            cut[name] = found
        for text in said(stage.window):
            if "[" not in text and any(letter.isalpha() for letter in text):
                plain.setdefault(text, name)
    for text, name in plain.items():
        print(f"PLAIN {name}: {text!r}")
    for name, found in cut.items():
        for one in found:
            print(f"CUT {name}: {one}")
