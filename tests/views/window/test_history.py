"""Back and forward over the visited pages, by keys, by the mouse and by the palette."""

from PySide6.QtCore import QCoreApplication, QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QKeySequence, QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPlainTextEdit
from pytestqt.qtbot import QtBot

from engine_host.protocol.remote.hosts import RemoteHost
from sndr_gui.kit.shortcuts import keys
from sndr_gui.views.hosts.page import HostsView
from tests.views.conftest import Stage


def press(stage: Stage, name: str) -> str:
    """Press the keys of an action, and return the page that is in front then."""
    QTest.keySequence(stage.window, QKeySequence(keys(name)))
    return stage.window.current


async def test_keys_go_back_and_forward(stage: Stage, qtbot: QtBot) -> None:
    with qtbot.waitActive(stage.window):
        stage.window.activateWindow()
    assert press(stage, "back") == "home", "there was nothing before"
    for page in ("logs", "logs", "fit"):
        stage.window.go(page)
    assert [press(stage, "back"), press(stage, "back"), press(stage, "back")] == ["logs", "home", "home"]
    assert stage.window.sidebar.buttons["home"].isChecked()
    assert [press(stage, "forward"), press(stage, "forward")] == ["logs", "fit"]
    assert press(stage, "forward") == "fit"


async def test_the_buttons_at_the_side_of_a_mouse_do_so_over_text_too(stage: Stage) -> None:
    stage.window.go("logs")
    stage.window.go("chat")
    over = stage.window.page.findChild(QPlainTextEdit, "composer")
    assert isinstance(over, QPlainTextEdit)
    spot = QPointF(over.mapTo(stage.window, QPoint(5, 5)))

    def pressed(button: Qt.MouseButton) -> str:
        # As it comes from the system: to the window, which hands it to the control below the pointer.
        event = QMouseEvent(
            QEvent.Type.MouseButtonPress, spot, spot, button, button, Qt.KeyboardModifier.NoModifier
        )
        QCoreApplication.sendEvent(stage.window.windowHandle(), event)
        return stage.window.current

    assert pressed(Qt.MouseButton.BackButton) == "logs"
    assert pressed(Qt.MouseButton.ForwardButton) == "chat"


async def test_back_first_leaves_what_is_open_on_the_page(stage: Stage, qtbot: QtBot) -> None:
    with qtbot.waitActive(stage.window):
        stage.window.activateWindow()
    stage.window.go("hosts")
    page = stage.window.page
    assert isinstance(page, HostsView)
    page.model.open("")
    opened = [(press(stage, "back"), page.model.opened), (press(stage, "back"), page.model.opened)]
    assert opened == [("hosts", None), ("home", None)]


async def test_the_palette_says_where_it_leads(stage: Stage) -> None:
    def offered() -> set[str]:
        titles = {entry.title for entry in stage.window.palette_box._entries()}
        return {title for title in titles if title.startswith(("Back", "Forward"))}

    assert offered() == set()
    stage.window.go("logs")
    assert offered() == {"Back to Home"}
    palette = stage.window.palette_box
    palette.open()
    QTest.keyClicks(palette.edit, "back to")
    QTest.keyClick(palette.edit, Qt.Key.Key_Return)
    assert stage.window.current == "home"
    assert offered() == {"Forward to Logs"}


async def test_it_leads_to_the_pages_of_the_host_they_were_of(stage: Stage) -> None:
    stage.host.set_remote(RemoteHost(name="far", destination="far", mode="engine_host"))
    fleet = stage.pages.fleet
    await stage.until(lambda: fleet.names)
    stage.window.go("logs")
    fleet.choose("far")
    stage.window.go("fit")
    places = []
    for _step in range(3):
        stage.window.go_back()
        places.append((fleet.chosen, stage.window.current))
    assert places == [("far", "logs"), ("", "logs"), ("", "home")]
    stage.window.go_forward()
    stage.window.go_forward()
    assert (fleet.chosen, stage.window.current) == ("far", "logs")
    assert "Back to Logs on this machine" in [one.title for one in stage.window.palette_box._entries()]
