"""The box of the hosts: its list says name and state, and itself the name."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from sndr_gui.views.window.host_choice import _HostBox


@pytest.mark.qt_log_ignore("This plugin does not support")
def test_after_escape_it_says_the_name_alone(qtbot: QtBot) -> None:
    box = _HostBox("hosts")
    qtbot.addWidget(box)
    box.listed = ["This machine  ·  connected", "gpu  ·  connecting"]
    box.fill([(title, title) for title in box.listed], box.listed[0])
    box.show_names()
    box.show()
    box.showPopup()
    assert box.itemText(0) == "This machine  ·  connected"
    QTest.keyClick(box.view(), Qt.Key.Key_Escape)
    assert not box.view().isVisible()
    assert box.currentText() == "This machine"
