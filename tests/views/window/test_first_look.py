"""The first look at the window: small windows, wrong numbers, dead engines."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from engine_host.protocol.engines import EngineState
from sndr_gui.models.launch.page import ListKind
from sndr_gui.views.chat.page import ChatView
from sndr_gui.views.home.page import HomeView
from sndr_gui.views.launch.page import LaunchView
from sndr_gui.views.monitor.page import MonitorView
from sndr_gui.views.settings.page import SettingsView
from tests.views.conftest import Stage
from tests.views.samples import host as samples


async def chat(stage: Stage, running: bool = True) -> ChatView:
    if running:
        stage.host.set_engine(samples.engine(EngineState.READY))
        await stage.until(lambda: stage.state.running is not None)
    stage.window.go("chat")
    page = stage.window.page
    assert isinstance(page, ChatView)
    return page


async def test_composer_grows_with_typed_and_wrapped_lines(stage: Stage) -> None:
    edit = (await chat(stage)).composer.edit
    stage.window.grab()
    line, one = edit.fontMetrics().lineSpacing(), edit.height()
    QTest.keyClicks(edit, "one")
    for _ in range(3):
        QTest.keyClick(edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
        QTest.keyClicks(edit, "more")
    assert edit.height() == one + 3 * line
    assert edit.verticalScrollBar().maximum() == 0, "every typed line is in sight"
    edit.setPlainText("a long sentence that wraps " * 12)
    stage.window.grab()
    assert edit.height() > one
    edit.setPlainText("line\n" * 30)
    assert edit.height() == one + 7 * line, "then it scrolls"
    edit.clear()
    assert edit.height() == one


async def test_what_stands_on_a_tile_is_whole_in_a_small_window(stage: Stage) -> None:
    stage.window.resize(1000, 640)
    stage.host.set_engine(samples.engine(EngineState.READY))
    stage.window.go("home")
    page = stage.window.page
    assert isinstance(page, HomeView)
    await stage.until(lambda: page._cards_row.isVisible())
    card = page._cards[0]
    card.show_value("Decode, one request", "1,234 tok/s", "median of 12 requests in 60 s")
    stage.window.grab()
    note = card.note
    assert note.width() < note.fontMetrics().horizontalAdvance(note.text()), "it takes two lines here"
    await stage.until(lambda: note.height() >= note.heightForWidth(note.width()))


async def test_a_wrong_number_is_said_at_the_field_and_stops_the_start(stage: Stage) -> None:
    stage.window.go("launch")
    page = stage.window.page
    assert isinstance(page, LaunchView)
    page.model.show_list(ListKind.MODELS)
    await stage.until(lambda: page.start.start.isEnabled())
    field = page.sizes.context_slider.field
    QTest.keyClicks(field.edit, "5")
    assert field.wrong.isVisible()
    assert "128" in field.wrong.text()
    assert not page.start.start.isEnabled()
    field.edit.clear()
    QTest.keyClicks(field.edit, "99999999999")
    assert field.edit.text() == "99999999999", "no digit is dropped"
    assert not page.start.start.isEnabled()
    field.edit.clear()
    QTest.keyClicks(field.edit, "4096")
    assert not field.wrong.isVisible()
    await stage.until(lambda: page.start.start.isEnabled())


async def test_a_wrong_chat_option_stops_sending(stage: Stage) -> None:
    page = await chat(stage)
    page.options.click()
    QTest.keyClicks(page.panel.temperature, "9")
    assert not page.composer.send.isEnabled()
    assert page.model.blocked_reason.startswith("Temperature")
    page.panel.temperature.clear()
    QTest.keyClicks(page.panel.temperature, "0,5")
    assert not page.composer.send.isEnabled(), "there is nothing to send"
    QTest.keyClicks(page.composer.edit, "Hello")
    assert page.composer.send.isEnabled()
    assert page.model.options.sampling == {"temperature": 0.5}


async def test_home_shows_no_old_numbers_of_a_dead_engine(stage: Stage) -> None:
    stage.window.go("home")
    page = stage.window.page
    assert isinstance(page, HomeView)
    stage.host.set_engine(samples.engine(EngineState.FAILED))
    await stage.until(lambda: page.failure.isVisible())
    for card in (page._cards[0], page._cards[2], page._cards[3]):
        assert (card.value.text(), card.note.text()) == ("—", "not running")


async def test_small_window_shows_launch_and_monitor_whole(stage: Stage) -> None:
    await chat(stage)
    stage.window.resize(900, 600)
    stage.window.go("launch")
    launch = stage.window.page
    assert isinstance(launch, LaunchView)
    launch.model.show_list(ListKind.MODELS)
    await stage.until(lambda: launch.model.plan is not None)
    stage.window.grab()
    inside = launch.form.parentWidget()
    assert inside is not None
    area = inside.parentWidget()
    assert area is not None
    for part in (launch.sizes.streams, launch.sizes.boxes["kv_type_v"], launch.form.server):
        right = part.mapTo(area, part.rect().topRight()).x()
        assert right <= area.width(), "nothing is cut off at the right"
    stage.window.go("monitor")
    monitor = stage.window.page
    assert isinstance(monitor, MonitorView)
    stage.window.grab()
    cards = [monitor.graphs.memory, monitor.graphs.kv, monitor.graphs.rates, monitor.table, monitor._empty]
    shown = [part for part in cards if part.isVisible()]
    for one in shown:
        for other in shown:
            assert one is other or not one.geometry().intersects(other.geometry())


async def test_chat_without_an_engine_starts_one(stage: Stage) -> None:
    page = await chat(stage, running=False)
    assert page.start.text() == "Start sndr-demo"
    QTest.mouseClick(page.start, Qt.MouseButton.LeftButton)
    assert page.start.text() == "Starting…"
    await stage.until(lambda: stage.host.sent("POST", "/v1/engines"))
    await stage.until(lambda: not page.start.isVisible())


async def test_chat_says_why_its_engine_failed_and_tries_again(stage: Stage) -> None:
    page = await chat(stage)
    page.model.send("Hello")
    await stage.until(lambda: not page.model.busy)
    stage.host.set_engine(samples.engine(EngineState.FAILED))
    await stage.until(page.offer.isVisible)
    assert "weights" in page._offer_text.text()
    assert page.again.text() == "Start sndr-demo again"
    QTest.mouseClick(page.again, Qt.MouseButton.LeftButton)
    await stage.until(lambda: stage.host.sent("POST", "/v1/engines"))
    await stage.until(lambda: not page.offer.isVisible())


@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
async def test_every_entry_of_a_choice_is_whole(stage: Stage) -> None:
    stage.window.go("launch")
    page = stage.window.page
    assert isinstance(page, LaunchView)
    page.model.show_list(ListKind.MODELS)
    await stage.until(lambda: page.model.plan is not None)
    box = page.form.box("speculation")
    box.showPopup()
    view = box.view()
    last = view.visualRect(box.model().index(box.count() - 1, 0))
    assert view.viewport().rect().contains(last), "the last entry is cut"
    assert view.width() >= min(view.sizeHintForColumn(0), 420)
    box.hidePopup()


async def test_a_long_command_line_ends_before_its_copy_button(stage: Stage) -> None:
    stage.host.plan = samples.plan(command="sndr run sndr-demo " + "--set extra_arguments=--a-long-one " * 9)
    stage.window.resize(900, 600)
    stage.window.go("launch")
    page = stage.window.page
    assert isinstance(page, LaunchView)
    page.model.show_list(ListKind.MODELS)
    await stage.until(lambda: page.model.plan is not None)
    equivalent_command = page.start.equivalent_command
    label = equivalent_command.label
    # A layout whose height follows its width settles over several events: every line comes into sight.
    await stage.until(lambda: label.height() >= label.heightForWidth(label.width()) > 60)
    assert label.geometry().right() < equivalent_command._copy.geometry().left()


async def test_only_changed_settings_can_be_taken_back(stage: Stage) -> None:
    stage.host.settings = samples.settings(engine__streams=2)
    stage.state.set_settings(stage.host.settings)
    stage.window.go("settings")
    page = stage.window.page
    assert isinstance(page, SettingsView)
    assert page._rows["engine.streams"]._reset.isVisible()
    assert not page._rows["engine.context"]._reset.isVisible()
