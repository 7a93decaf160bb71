"""The window around the pages: connection, reconnect, shortcuts, palette, theme, accessibility."""

import asyncio
import importlib.util
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QImage, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QTextEdit,
    QWidget,
)
from pytestqt.qtbot import QtBot

from engine_host.protocol.base import Severity
from engine_host.protocol.engines import EngineState, RequestState
from engine_host.protocol.events import (
    EngineRequestEvent,
    HostStateEvent,
    JobDoneEvent,
    NoticeEvent,
    TelemetryEvent,
)
from engine_host.protocol.jobs import JobKind, JobState
from engine_host.protocol.telemetry import Sample
from sndr_gui.host.connection import USER_AGENT, Phase
from sndr_gui.host.notices import Notice
from sndr_gui.kit import theme
from sndr_gui.kit.look.choices import ThemeChoice
from sndr_gui.kit.look.colours import DARK, LIGHT
from sndr_gui.views.home.alerts import AlertsCard
from sndr_gui.views.window.commands import commands
from sndr_gui.views.window.main import Window
from sndr_gui.views.window.pages import PAGES
from tests.views.conftest import Stage, opened
from tests.views.samples import host as samples

NAMES = [page.name for page in PAGES]
SHOTS = Path(__file__).resolve().parents[3] / "packaging" / "shots.py"


async def test_snapshot_then_events(stage: Stage) -> None:
    assert stage.connection.phase is Phase.CONNECTED
    assert stage.state.host is not None
    stage.host.set_engine(samples.engine(EngineState.READY))
    await stage.until(lambda: stage.state.running)
    stage.host.publish(TelemetryEvent(sample=Sample(at=1.0, values={"ram.used": 5.0})))
    await stage.until(lambda: stage.state.sample)
    assert stage.state.seq == stage.host.seq


async def test_reconnects_and_reads_the_snapshot_again(stage: Stage) -> None:
    await stage.host.stop()
    await stage.until(lambda: stage.connection.phase is not Phase.CONNECTED)
    assert stage.connection.lost_at is not None
    assert stage.state.host is not None, "the last known values stay"
    stage.host.run_id = "run-2"
    stage.host.engines["engine-1"] = samples.engine(EngineState.READY)
    await stage.host.start()
    stage.connection.retry()
    await stage.until(lambda: stage.connection.connected)
    assert stage.state.run_id == "run-2"
    assert stage.state.running is not None
    assert stage.connection.lost_at is None


@pytest.mark.parametrize(
    ("owned", "owner", "says"),
    [
        (True, "the window that started it", "ends with this window"),
        (False, "the command that started it", "ends with the command that started it"),
        (False, "the window that started it", "ends with the window that started it"),
        (False, "somebody", "ends with somebody"),
        (False, "", "ends with this window"),
    ],
)
async def test_the_status_bar_says_with_whom_the_host_ends(
    stage: Stage, owned: bool, owner: str, says: str
) -> None:
    assert stage.state.host is not None
    stage.state.host = stage.state.host.model_copy(update={"owner": owner})
    stage.connection.owned = owned
    stage.state.host_changed.emit()
    assert stage.window._status.text().endswith(says)
    stage.connection.owned = False


@pytest.mark.parametrize("long_before", [False, True])
async def test_an_engine_that_was_stopped_just_before_its_host_ended_with_it(
    stage: Stage, long_before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.host.set_engine(samples.engine(EngineState.READY))
    await stage.until(lambda: stage.state.running is not None)
    name = samples.engine(EngineState.READY).name
    stage.host.set_engine(samples.engine(EngineState.UNLOADED))
    await stage.until(lambda: stage.state.running is None)
    if long_before:
        monkeypatch.setattr("sndr_gui.host.state._TOGETHER", 0.0)
    stage.host.publish(HostStateEvent(state="closing", endpoint=samples.endpoint()))
    await stage.until(lambda: stage.state.closing)
    assert list(stage.state.last_live.values()) == ([] if long_before else [name])


@pytest.mark.parametrize("kept", [False, True])
async def test_another_host_than_before_is_told_with_the_engines_that_ended(stage: Stage, kept: bool) -> None:
    stage.host.set_engine(samples.engine(EngineState.READY))
    await stage.until(lambda: stage.state.running is not None)
    name = samples.engine(EngineState.READY).name
    await stage.host.stop()
    await stage.until(lambda: stage.connection.phase is not Phase.CONNECTED)
    stage.host.run_id = "run-2"
    if not kept:
        stage.host.engines.clear()
    await stage.host.start()
    stage.connection.retry()
    await stage.until(lambda: stage.connection.connected)
    (told,) = [notice for notice in stage.window.toasts.shown if notice.key == "host replaced"]
    assert "The engine host ended, and another one answers now." in told.text
    assert (f"{name} ended with the old one: start it again." in told.text) is not kept
    if not kept:
        assert told.action is not None
        told.action()
        assert stage.window.current == "launch"
    # The notice goes away; who was elsewhere finds it on Home until it is put away.
    stage.window.go("home")
    card = stage.window.findChild(AlertsCard)
    assert card is not None
    await stage.until(lambda: told.text in [one.text() for one in card.findChildren(QLabel)])
    if kept:
        card.away.click()
    else:
        # Started again, neither has anything to say any more.
        stage.host.set_engine(samples.engine(EngineState.READY))
        await stage.until(lambda: told not in stage.window.toasts.shown)
    await stage.until(lambda: not card.isVisible())


async def test_closing_asks_while_other_programs_wait_for_answers(stage: Stage) -> None:
    left: list[bool] = []
    stage.window.closing.connect(lambda: left.append(True))
    said: list[Notice] = []
    stage.notices.posted.connect(said.append)
    stage.connection.owned = True
    own = samples.request(RequestState.DECODE, 1, client=USER_AGENT)
    stage.host.publish(EngineRequestEvent(request=own))
    stage.host.publish(EngineRequestEvent(request=samples.request(RequestState.DECODE, 2)))
    await stage.until(lambda: len(stage.state.requests) == 2)

    stage.window.close()
    assert (left, stage.window.isVisible()) == ([], True)
    assert "One request of another program" in said[-1].text
    stage.window.close()
    assert left == [True]

    stage.host.publish(EngineRequestEvent(request=samples.request(RequestState.DONE, 2)))
    await stage.until(lambda: stage.state.open_requests("engine-1") == 1)
    stage.window.show()
    stage.window.close()
    assert left == [True, True], "its own chat is no reason to ask"
    stage.connection.owned = False


async def test_a_host_that_was_handed_over_is_not_taken_along(stage: Stage) -> None:
    def goes_on() -> bool:
        return stage.state.outlives_window

    assert not goes_on()
    for stays in (True, False):
        event = HostStateEvent(state="serving", endpoint=samples.endpoint(), ends_with_window=not stays)
        stage.host.publish(event)
        await stage.until(goes_on if stays else lambda: not goes_on())


async def test_reset_reads_everything_again(stage: Stage) -> None:
    stage.host.models = samples.models().model_copy(update={"models": ()})
    stage.state.outdated.emit("all")
    await stage.until(lambda: stage.state.models is not None and not stage.state.models.models)


async def test_nothing_waits_for_a_host_that_still_learns_its_servers(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    gate = stage.host.servers_gate = asyncio.Event()
    await stage.open()
    assert stage.state.host is not None
    assert stage.state.servers is None
    gate.set()
    await stage.until(lambda: stage.state.servers is not None)
    await stage.close()


async def test_other_protocol_is_refused_in_a_sentence(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.host.major = 2
    await stage.host.start()
    await stage.open(connect=False)
    await stage.until(lambda: stage.connection.phase is Phase.MISMATCH)
    assert "Update the window" in stage.connection.sentence
    await stage.close()


async def test_host_that_does_not_start_is_told_with_its_last_words(tmp_path: Path) -> None:
    async with opened(tmp_path, connect=False) as stage:
        await stage.until(lambda: stage.connection.phase is Phase.FAILED)
        assert "exit code 1" in stage.connection.sentence
        assert stage.window.page.isVisible()


async def test_endpoint_in_the_status_bar_follows_events(stage: Stage) -> None:
    moved = samples.endpoint(url="http://127.0.0.1:9000/v1", port=9000)
    stage.host.publish(HostStateEvent(state="serving", endpoint=moved))
    await stage.until(lambda: "9000" in stage.window._status.text())


async def test_notices_replace_each_other_by_key(stage: Stage) -> None:
    for text in ("First.", "Second."):
        stage.host.publish(NoticeEvent(key="port", severity=Severity.WARNING, text=text))
    await stage.until(lambda: [notice.text for notice in stage.window.toasts.shown] == ["Second."])
    stage.host.publish(JobDoneEvent(job=samples.job(JobKind.ENGINE_BUILD, JobState.FAILED)))
    await stage.until(lambda: len(stage.window.toasts.shown) == 2)
    assert "No C++ compiler" in stage.window.toasts.shown[1].text


async def test_the_window_is_on_the_screen_as_a_whole(stage: Stage) -> None:
    """Its title bar and its status bar too: at the first start, and with a place from a larger screen."""
    room = stage.window.screen().availableGeometry().size()
    stage.file.write(replace(stage.file.current, geometry=stage.window.geometry_text))
    for _start in ("with a kept place", "the first"):
        made = Window(stage.file, stage.notices)
        assert made.height() <= room.height() - 40
        assert made.width() <= room.width()
        made.deleteLater()
        stage.file.write(replace(stage.file.current, geometry=""))


async def test_every_page_opens_by_its_keys(stage: Stage, qtbot: QtBot) -> None:
    with qtbot.waitActive(stage.window):
        stage.window.activateWindow()
    for page in PAGES:
        QTest.keySequence(stage.window, QKeySequence(page.shortcut))
        assert stage.window.current == page.name
        await asyncio.sleep(0.05)


async def test_palette_finds_and_runs(stage: Stage, qtbot: QtBot) -> None:
    with qtbot.waitActive(stage.window):
        stage.window.activateWindow()
    QTest.keyClick(stage.window, Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier)
    palette = stage.window.palette_box
    assert palette.isVisible()
    QTest.keyClicks(palette.edit, "monit")
    QTest.keyClick(palette.edit, Qt.Key.Key_Return)
    assert stage.window.current == "monitor"
    assert not palette.isVisible()
    palette.open()
    QTest.keyClicks(palette.edit, "start qwen")
    QTest.keyClick(palette.edit, Qt.Key.Key_Return)
    await stage.until(lambda: stage.host.sent("POST", "/v1/engines"))
    assert stage.host.sent("POST", "/v1/plans")[-1]["model"] == "qwen3-8b"
    palette.open()
    QTest.keyClicks(palette.edit, "no such thing")
    assert palette.list.count() == 0
    QTest.keyClick(palette.edit, Qt.Key.Key_Escape)
    assert not palette.isVisible()


async def test_palette_tells_models_of_one_name_apart(stage: Stage, qtbot: QtBot) -> None:
    await stage.until(lambda: stage.pages.installations.page is not None)
    models = stage.host.models.models
    twins = (models[0], models[0].model_copy(update={"id": "twin", "format": "safetensors"}))
    stage.state.models = stage.host.models.model_copy(update={"models": twins})
    found = [entry for entry in commands(stage.pages) if entry.title == f"Start {models[0].name}"]
    assert len({entry.hint for entry in found}) == 2
    assert any("safetensors" in entry.hint for entry in found)


async def test_tab_goes_from_the_page_to_the_status_bar_and_round(stage: Stage, qtbot: QtBot) -> None:
    stage.window.go("logs")
    await asyncio.sleep(0.1)
    with qtbot.waitActive(stage.window):
        stage.window.activateWindow()
    commands = stage.window._commands
    assert "Ctrl+K" in commands.text()
    stage.window.page.focus_filter()
    walked: list[QWidget] = []
    while commands not in walked and len(walked) < 40:
        focused = QApplication.focusWidget()
        assert focused is not None
        walked.append(focused)
        QTest.keyClick(focused, Qt.Key.Key_Tab)
    assert all(stage.window.page.isAncestorOf(one) for one in walked[:-1]), walked
    assert QApplication.focusWidget() in stage.window.sidebar.buttons.values()


async def test_theme_changes_colours_and_is_kept(stage: Stage) -> None:
    stage.pages.settings.set_theme(ThemeChoice.DARK)
    assert theme.current() is DARK
    assert stage.file.current.theme is ThemeChoice.DARK
    for name in NAMES:
        stage.window.go(name)
        await asyncio.sleep(0.05)
        picture = stage.window.grab().toImage()
        assert picture.pixelColor(600, 30).lightness() < 60
    stage.pages.settings.set_theme(ThemeChoice.LIGHT)
    assert theme.current() is LIGHT


CONTROLS = (QAbstractButton, QLineEdit, QComboBox, QPlainTextEdit, QTextEdit, QAbstractItemView)


def controls(page: QWidget) -> Iterator[QWidget]:
    """Every control of a page that can be seen; not the parts that Qt puts into its own controls."""
    for widget in page.findChildren(QWidget):
        if isinstance(widget, CONTROLS) and widget.isVisible():
            owner = widget.parentWidget()
            inner = isinstance(owner, CONTROLS) or (
                owner is not None and owner.inherits("QComboBoxPrivateContainer")
            )
            if not inner and not widget.objectName().startswith("qt_"):
                yield widget


@pytest.mark.parametrize("state", [None, EngineState.STARTING, EngineState.READY, EngineState.FAILED])
async def test_every_control_has_a_name_and_a_way_by_keyboard(
    stage: Stage, state: EngineState | None
) -> None:
    if state is not None:
        stage.host.set_engine(samples.engine(state))
        await stage.until(lambda: stage.state.engine)
    nameless, unreachable = [], []
    for name in NAMES:
        stage.window.go(name)
        await asyncio.sleep(0.15)
        assert any(controls(stage.window.page)), name
        for widget in controls(stage.window):
            face = QAccessible.queryAccessibleInterface(widget)
            if not (face.text(QAccessible.Text.Name) or widget.accessibleName()):
                nameless.append(f"{name}: {widget!r}")
            reachable = widget.focusPolicy() & Qt.FocusPolicy.TabFocus
            if not reachable and widget.isEnabled() and not isinstance(widget, QAbstractItemView):
                unreachable.append(f"{name}: {widget!r} {widget.accessibleName()}")
    assert not nameless
    assert not unreachable


async def test_tab_reaches_every_control(stage: Stage, qtbot: QtBot) -> None:
    stage.host.set_engine(samples.engine(EngineState.READY))
    await stage.until(lambda: stage.state.running)
    with qtbot.waitActive(stage.window):
        stage.window.activateWindow()
    missed = {}
    for name in NAMES:
        stage.window.go(name)
        await asyncio.sleep(0.3)
        missed[name] = [widget.accessibleName() for widget in missed_by_tab(stage.window)]
    assert not any(missed.values()), missed


def missed_by_tab(window: Window) -> set[QWidget]:
    """The controls that can be seen and that nobody comes to with Tab, however long it is pressed."""
    wanted = {widget for widget in controls(window) if widget.isEnabled()}
    wanted = {widget for widget in wanted if widget.focusPolicy() & Qt.FocusPolicy.TabFocus}
    reached: set[QWidget] = set()
    for _ in range(3 * len(wanted) + 20):
        focused = QApplication.focusWidget()
        if focused is not None:
            reached.add(focused)
            QTest.keyClick(focused, Qt.Key.Key_Tab)
    # Of exclusive buttons one is a stop, and the arrow keys go to the others.
    return {
        widget
        for widget in wanted - reached
        if not (isinstance(widget, QAbstractButton) and (widget.autoExclusive() or widget.group()))
    }


def test_no_graph_library_before_monitor() -> None:
    program = (
        "import sys, sndr_gui.app, sndr_gui.views.window.context, sndr_gui.views.home.page,"
        " sndr_gui.views.launch.page,"
        " sndr_gui.views.chat.page, sndr_gui.views.logs.page, sndr_gui.views.settings.page,"
        " sndr_gui.views.monitor.page;"
        "sys.exit(any(name in sys.modules for name in ('pyqtgraph', 'numpy')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_first_paint_needs_neither_pydantic_nor_httpx() -> None:
    program = (
        "import sys, sndr_gui.app;"
        "sys.exit(any(name in sys.modules for name in ('pydantic', 'httpx', 'pyqtgraph', 'psutil')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def million_squares() -> float:
    """Return the processor's seconds for a fixed piece of work: how fast this machine is at the moment."""
    before = time.process_time()
    sum(number * number for number in range(1_000_000))
    return time.process_time() - before


async def test_window_answers_while_every_page_opens(stage: Stage) -> None:
    """No page keeps the event loop for long; the graph library is read beside it."""
    stage.host.set_engine(samples.engine(EngineState.READY))
    await stage.until(lambda: stage.state.running)
    worst = {}
    for name in NAMES:
        # The program's own time, other threads' included: one that holds the interpreter holds the window.
        clock, wall = time.process_time, asyncio.get_running_loop().time
        unit = million_squares()
        began, before = wall(), clock()
        stage.window.go(name)
        longest = clock() - before
        while wall() - began < 1.0:
            before = clock()
            await asyncio.sleep(0.005)
            longest = max(longest, clock() - before)
        worst[name] = round(longest / max(unit, million_squares()), 2)
    # Launch, the largest page, has 3.6 alone and up to 4.9 beside other tests: this finds what doubles it.
    assert max(worst.values()) < 8, worst


async def test_pictures_are_taken_of_every_page_in_both_themes(stage: Stage, tmp_path: Path) -> None:
    place = SHOTS
    spec = importlib.util.spec_from_file_location("shots", place)
    assert spec is not None
    assert spec.loader is not None
    shots = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(shots)
    taken = await shots.shoot(
        stage.window, tmp_path, ["home", "settings"], [ThemeChoice.LIGHT, ThemeChoice.DARK]
    )
    assert [path.name for path in taken] == [
        "home-light.png",
        "settings-light.png",
        "home-dark.png",
        "settings-dark.png",
    ]
    pictures = [QImage(str(path)) for path in taken]
    assert {(picture.width(), picture.height()) for picture in pictures} == {(1280, 820)}
    assert pictures[0] != pictures[2]
    theme.choose(ThemeChoice.LIGHT)
