"""Every page and its view-models over a host that answers with errors, slowly, with garbage, or not at all.

Everything that a page offers is pressed meanwhile: nothing of it may end in an error that nobody handles, and
the window goes on as soon as the host does.
"""

import asyncio
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
import shiboken6
from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QAbstractButton, QApplication, QComboBox, QLineEdit, QWidget

from engine_host.protocol.engines import EngineState, RequestState
from engine_host.protocol.events import EngineRequestEvent, LogLineEvent
from sndr_gui.host import connection
from sndr_gui.host.connection import Phase
from sndr_gui.views.faults.page import FaultPage
from sndr_gui.views.settings.appearance import AppearanceCard
from sndr_gui.views.widgets.page import Page
from sndr_gui.views.window import pages
from sndr_gui.views.window.context import PageContext
from sndr_gui.views.window.pages import PAGES, page_entry
from tests.views.conftest import Stage, opened
from tests.views.fakes.misbehaving import SLOW, WAYS, misbehaving
from tests.views.samples import host as samples
from tests.views.window.test_main import NAMES

# Of menus and dialogs, offscreen.
pytestmark = [
    pytest.mark.qt_log_ignore("This plugin does not support", extend=True),
    # The FAKE host's own end of a connection that its client has dropped.
    pytest.mark.filterwarnings("ignore:Exception ignored in.*(_SelectorTransport|socket.socket)"),
]
# Fills the clipboard of whoever runs the tests.
LEFT_OUT = {"Copy"}


@pytest.fixture(autouse=True)
def nothing_opens_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """No browser and no file manager for what the tests press."""

    def refuse(_address: QUrl) -> bool:
        return False

    monkeypatch.setattr(QDesktopServices, "openUrl", refuse)


def offered(page: QWidget) -> list[QWidget]:
    """The controls of a page that a person could use now, topmost first."""
    found: list[QWidget] = []
    for kind in (QAbstractButton, QComboBox, QLineEdit):
        found += [one for one in page.findChildren(kind) if one.isVisibleTo(page) and one.isEnabled()]
    # The look is no matter of the host, and putting it on again and again takes a minute.
    return [one for one in found if not of_the_look(one)]


def of_the_look(control: QWidget) -> bool:
    """Whether a control stands on the card of the look."""
    above = control.parentWidget()
    while above is not None and not isinstance(above, AppearanceCard):
        above = above.parentWidget()
    return above is not None


async def use(page: QWidget) -> None:
    """Press, choose and type wherever the page lets one."""
    for control in offered(page):
        try:
            name = control.accessibleName()
            if isinstance(control, QAbstractButton):
                if name in LEFT_OUT or not control.isVisible():
                    continue
                control.click()
            elif isinstance(control, QComboBox) and control.count():
                place = (control.currentIndex() + 1) % control.count()
                control.setCurrentIndex(place)
                control.activated.emit(place)
            elif isinstance(control, QLineEdit) and not control.isReadOnly():
                control.setText("7")
                control.setModified(True)
                control.editingFinished.emit()
        except RuntimeError:
            # What was pressed before took this one away.
            if shiboken6.isValid(control):
                raise
        await asyncio.sleep(0)
        close_dialogs(page.window())


def close_dialogs(window: QWidget) -> None:
    """Leave what opened over the window."""
    while (menu := QApplication.activePopupWidget()) is not None:
        menu.close()
    for other in QApplication.topLevelWidgets():
        if other is not window and other.isVisible():
            other.close()


async def busy(stage: Stage) -> None:
    """Something of everything that pages show: an engine, a request, lines of a log."""
    stage.host.set_engine(samples.engine(EngineState.READY))
    stage.host.publish(EngineRequestEvent(request=samples.request(RequestState.DECODE)))
    stage.host.publish(LogLineEvent(lines=tuple(samples.log_lines())))
    await stage.until(lambda: stage.state.running and stage.state.requests)


async def visit(stage: Stage, name: str) -> None:
    """Show a page, use all of it, and draw it."""
    stage.window.go(name)
    await asyncio.sleep(0.02)
    for part in ("models", "servers", "settings"):
        stage.state.outdated.emit(part)
    await use(stage.window.page)
    stage.window.go(name)
    await asyncio.sleep(0.05)
    assert not stage.window.grab().isNull(), name


async def goes_on(stage: Stage) -> None:
    """See that the window still shows what its host says."""
    close_dialogs(stage.window)
    await stage.until(lambda: stage.connection.connected)
    stage.host.set_engine(samples.engine(EngineState.UNLOADED))
    await stage.until(lambda: all(one.state is EngineState.UNLOADED for one in stage.state.engines.values()))
    stage.window.go("home")
    assert stage.window.page.title.text() == "Home"


# What a test can do in its time.
GROUPS = [NAMES[place : place + 4] for place in range(0, len(NAMES), 4)]


@pytest.mark.parametrize("names", GROUPS, ids=lambda names: "-".join(names))
@pytest.mark.parametrize("way", ["errors", "nothing in it", "slowly", "gone"])
async def test_whatever_is_pressed_while_the_host_answers_wrong(
    stage: Stage, way: str, names: list[str]
) -> None:
    await busy(stage)
    if way == "gone":
        await stage.host.stop()
        await stage.until(lambda: not stage.connection.connected)
    else:
        stage.host.real, stage.host.real_paths = misbehaving(stage.host.app(), way), ("/",)
    for name in names:
        await visit(stage, name)
    # What was under way comes in as well.
    await asyncio.sleep(2 * SLOW if way == "slowly" else 0.1)
    stage.host.real = None
    if way == "gone":
        assert stage.connection.phase in (Phase.RECONNECTING, Phase.FAILED)
        await stage.host.start()
        stage.connection.retry()
    await goes_on(stage)


@pytest.mark.parametrize("way", sorted(set(WAYS) - {"errors", "nothing in it"}))
async def test_pages_that_open_while_the_host_answers_wrong(stage: Stage, way: str) -> None:
    stage.host.real, stage.host.real_paths = misbehaving(stage.host.app(), way), ("/",)
    # The snapshot fails as well, so that nothing new is there to be shown.
    stage.state.outdated.emit("all")
    await open_all(stage)
    stage.host.real = None
    await busy(stage)
    await goes_on(stage)


async def test_pages_that_open_before_any_host_is_there(loop: object, tmp_path: Path) -> None:
    async with opened(tmp_path, connect=False) as stage:
        await open_all(stage)
        assert not stage.connection.connected
        await stage.host.start()
        stage.connection.retry()
        await goes_on(stage)


async def open_all(stage: Stage) -> None:
    """Show every page, and draw it."""
    for name in NAMES:
        stage.window.go(name)
        await asyncio.sleep(0.02)
        assert not stage.window.grab().isNull(), name


@pytest.mark.parametrize("name", connection._CLIENT)
def test_what_is_imported_while_the_host_begins_is_there(name: str) -> None:
    """One that a new version of a library has elsewhere would be passed over, and the window wait for it."""
    assert find_spec(name) is not None


async def test_a_defect_of_the_connection_is_told_once_and_tried_again(
    loop: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[BaseException] = []
    monkeypatch.setattr(sys, "excepthook", lambda _kind, error, _trace: told.append(error))

    def load() -> None:
        raise ModuleNotFoundError("No module named 'left_out'")

    monkeypatch.setattr(connection, "_load_client", load)
    async with opened(tmp_path, connect=False) as stage:
        await stage.host.start()
        stage.connection.retry()
        await stage.until(lambda: stage.connection.phase is Phase.FAILED and told)
        assert "left_out" in stage.connection.sentence
        stage.connection.retry()
        monkeypatch.setattr(connection, "_load_client", lambda: None)
        await stage.until(lambda: stage.connection.connected)
        assert [type(error) for error in told] == [ModuleNotFoundError]


async def test_a_page_that_cannot_be_made_leaves_the_others(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = page_entry("logs")
    wrong = ["twice two is five"]

    def build(context: PageContext) -> Page:
        if wrong:
            raise ValueError(wrong[0])
        return entry.build(context)

    monkeypatch.setattr(
        pages, "PAGES", tuple(replace(one, build=build) if one is entry else one for one in PAGES)
    )
    stage.window.go("logs")
    fault = stage.window.page
    assert isinstance(fault, FaultPage)
    assert stage.window.current == "logs"
    assert [str(error) for error in stage.errors] == wrong
    stage.errors.clear()
    stage.window.go("home")
    assert stage.window.page.title.text() == "Home"
    stage.window.go("logs")
    wrong.clear()
    fault.again.click()
    assert stage.window.page.title.text() == "Logs"
    assert not isinstance(stage.window.page, FaultPage)


async def test_a_page_that_fails_when_it_is_shown_or_left_keeps_nobody(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.window.go("logs")

    def fail(shown: bool) -> None:
        raise RuntimeError(f"told {shown}")

    monkeypatch.setattr(stage.window.page, "set_shown", fail)
    stage.window.go("home")
    stage.window.go("logs")
    assert stage.window.current == "logs"
    stage.window.go_back()
    assert stage.window.current == "home"
    assert [str(error) for error in stage.errors] == ["told False", "told True", "told False"]
    stage.errors.clear()
    monkeypatch.undo()
