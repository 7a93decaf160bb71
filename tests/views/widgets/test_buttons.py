"""Buttons are pressed by Space and by Enter, whatever the desktop."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton

from sndr_gui.views.widgets.buttons import EnterButton
from sndr_gui.views.window.pages import PAGES
from tests.views.conftest import Stage


@pytest.mark.parametrize("key", [Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter])
async def test_a_page_is_opened_by_the_key(stage: Stage, key: Qt.Key) -> None:
    QTest.keyClick(stage.window.sidebar.buttons["library"], key)
    assert stage.window.current == "library"


async def test_enter_presses_the_buttons_of_every_page(stage: Stage) -> None:
    for page in PAGES:
        stage.window.go(page.name)
    others = {
        f"{type(made).__name__} {made.text()}"
        for made in stage.window.findChildren(QPushButton)
        if not isinstance(made, EnterButton)
    }
    assert not others
