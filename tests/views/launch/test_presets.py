"""Launch with presets: list, card, sliders and bar, changes that are applied, and the start."""

import asyncio
from dataclasses import replace

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QAccessible, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.events import PresetsChangedEvent
from engine_host.protocol.presets import PresetPage
from sndr_gui.models.launch.page import ListKind
from sndr_gui.views.launch.page import LaunchView
from tests.views.conftest import Stage
from tests.views.launch.opened import FIT, PLANS, VERDICTS, asked, page
from tests.views.samples import fit as fit_samples
from tests.views.samples import presets as preset_samples
from tests.views.widgets.visible_text import visible_text


async def test_what_works_best_is_chosen_and_planned_at_once(stage: Stage) -> None:
    view = await page(stage)
    assert view.model.list is ListKind.PRESETS
    assert view.preset.name.text() == "Demo llamacpp"
    assert view.subtitle.text() == "5 presets  ·  3 fit here  ·  2 ready"
    assert view.presets.table.chosen == 0
    await stage.until(lambda: view.start.start.isEnabled())
    assert asked(stage, PLANS)["preset"] == "demo-llamacpp"
    assert asked(stage, PLANS)["model"] == ""
    assert asked(stage, FIT) == {"preset": "demo-llamacpp"}, "the preset says the rest"


async def test_the_keyboard_searches_chooses_and_starts(stage: Stage, qtbot: QtBot) -> None:
    view = await page(stage)
    with qtbot.waitActive(stage.window):
        stage.window.activateWindow()
    QTest.keyClick(stage.window, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert view.filter.hasFocus()
    QTest.keyClicks(view.filter, "big 24")
    assert [row.item.preset.id for row in view.model.presets.rows.shown] == ["big-24"]
    QTest.keyClick(view.filter, Qt.Key.Key_Down)
    assert view.presets.table.hasFocus()
    assert view.model.presets.chosen == "big-24"
    await stage.until(lambda: asked(stage, PLANS)["preset"] == "big-24" and view.start.start.isEnabled())
    stage.window.activateWindow()
    QTest.keyClick(stage.window, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    await stage.until(lambda: stage.host.sent("POST", "/v1/engines"))
    await stage.until(view.start.cancel.isVisible)
    assert view.start.start.text().startswith("Starting…")
    assert view.outcome.isVisible()


async def test_what_the_list_does_not_show_is_not_started(stage: Stage) -> None:
    view = await page(stage)
    await stage.until(lambda: view.start.start.isEnabled())
    view.filter.setText("big 24")
    assert view.model.presets.chosen == "big-24", "the first of those that are shown"
    assert view.presets.table.chosen == 0
    view.filter.setText("zzz")
    assert view.model.subject is None
    assert not view.start.start.isEnabled()
    assert view.right.currentWidget() is view.nothing
    assert view.presets.empty.isVisible()
    view.presets.clear_filters.click()
    assert view.filter.text() == ""
    await stage.until(lambda: view.start.start.isEnabled())
    assert view.model.presets.shows(view.model.presets.chosen)
    view.model.show_list(ListKind.MODELS)
    view.filter.setText("zzz")
    assert view.model.subject is None
    assert not view.start.start.isEnabled()
    view.filter.clear()
    assert view.model.subject is not None


async def test_the_tab_key_follows_the_page(stage: Stage) -> None:
    view = await page(stage, "big-24")
    view.form.more.click()
    view.model.select_preset("demo-llamacpp")
    view.model.select_preset("big-24")
    await stage.until(lambda: len(view.form.shown()) > 3)
    chain: list[QWidget] = [view.filter]
    while (following := chain[-1].nextInFocusChain()) is not None and following is not view.filter:
        chain.append(following)
    places = [chain.index(view.form.inputs[name]) for name in view.form.shown() if name in view.form.inputs]
    assert places == sorted(places)
    assert chain.index(view.presets.table) < places[0]
    assert places[-1] < chain.index(view.form.more) < chain.index(view.start.start)


async def test_filters_narrow_and_are_taken_back(stage: Stage) -> None:
    view = await page(stage)
    box = view.presets.boxes["engine"]
    box.setCurrentIndex(box.findData("sglang"))
    box.activated.emit(box.currentIndex())
    assert [row.item.preset.id for row in view.model.presets.rows.shown] == ["on-sglang"]
    view.presets.here.click()
    assert view.presets.empty.isVisible()
    assert view.presets.empty.heading.text() == "No match"
    assert view.subtitle.text().startswith("0 of 5 presets")
    view.presets.clear_filters.click()
    assert view.presets.table.isVisible()
    assert not view.presets.here.isChecked()
    assert view.presets.boxes["engine"].currentData() == ""


async def test_the_search_is_taken_back_with_the_filters(stage: Stage) -> None:
    view = await page(stage)
    QTest.keyClicks(view.filter, "nothing like it")
    view.presets.clear_filters.click()
    assert view.filter.text() == ""
    assert len(view.model.presets.rows.shown) == 5


async def test_a_card_says_what_to_beware_of_and_links_to_the_better_one(stage: Stage) -> None:
    view = await page(stage, "big-24")
    said = visible_text(view.preset)
    for word in ("tight", "reported", "vLLM", "has not run it", "are not on this machine", "Download them."):
        assert word in said
    await stage.until(lambda: "Apache-2.0" in visible_text(view.facts))
    about = visible_text(view.facts)
    for word in (
        "owners of one 24 GB card",
        "a GPU of 24 GiB",
        "Apache-2.0",
        "16 GiB of weights",
        "27B parameters",
    ):
        assert word in about
    for word in (
        "when tool results are long",
        "70.7 tok/s",
        "1 x RTX 3090",
        "vLLM 0.24.0",
        "measured by others",
    ):
        assert word in about
    view.facts.links["demo-llamacpp"].click()  # type: ignore[attr-defined]
    assert view.model.presets.chosen == "demo-llamacpp"
    await stage.until(lambda: view.preset.name.text() == "Demo llamacpp")
    assert view.presets.table.chosen == 0


async def test_a_card_opens_the_editor_and_fit(stage: Stage) -> None:
    view = await page(stage, "my-27b")
    seen: list[tuple[str, str]] = []
    view.edit_requested.disconnect()
    view.fit_requested.disconnect()
    view.edit_requested.connect(lambda preset: seen.append(("edit", preset)))
    view.fit_requested.connect(lambda preset: seen.append(("fit", preset)))
    assert view.preset.edit.text() == "Edit…"
    view.preset.edit.click()
    view.preset.fit.click()
    assert seen == [("edit", "my-27b"), ("fit", "my-27b")]
    view.model.select_preset("big-24")
    await stage.until(lambda: view.preset.edit.text() == "Make a variation")


async def test_the_slider_moves_the_bar_and_the_plan(stage: Stage) -> None:
    view = await page(stage, "big-24")
    slider = view.sizes.context_slider.slider
    before = view.sizes.memory.bars.devices[0].needed
    asked_before = len(stage.host.sent("POST", FIT))
    slider.setFocus()
    for _ in range(6):
        QTest.keyClick(slider, Qt.Key.Key_Right)
    assert view.sizes.memory.bars.waiting, "dimmed until it is computed"
    assert view.sizes.minimumHeight() > 0, "it does not collapse meanwhile"
    assert view.sizes.memory.summary.text() == "Computing…"
    await stage.until(lambda: not view.model.fit.waiting)
    context = int(view.sizes.context.text())
    assert asked(stage, FIT)["context"] == context
    assert asked(stage, FIT)["preset"] == "big-24"
    assert len(stage.host.sent("POST", FIT)) - asked_before <= 3, "not one question a key"
    assert view.sizes.memory.bars.devices[0].needed > before
    await stage.until(lambda: asked(stage, PLANS)["overrides"].get("context") == context)
    assert f"{context:,}" in slider.accessibleName()


async def test_the_largest_context_is_marked_for_so_many_streams(stage: Stage) -> None:
    view = await page(stage, "big-24")
    slider = view.sizes.context_slider
    largest = view.model.fit.report.largest_context  # type: ignore[union-attr]
    assert slider.note.text() == f"Largest for 1 stream: {largest:,} tokens"
    assert slider.slider.mark is not None
    assert slider._values[slider.slider.mark] == largest
    view.model.set_value("streams", 2)
    await stage.until(lambda: not view.model.fit.waiting)
    assert "for 2 streams" in slider.note.text()
    assert view.sizes.streams_slider.note.text().startswith("Most at ")


async def test_an_exact_number_can_be_typed_and_a_wrong_one_stops_the_start(stage: Stage) -> None:
    view = await page(stage, "big-24")
    await stage.until(lambda: view.start.start.isEnabled())
    QTest.keyClicks(view.sizes.context, "12345")
    await stage.until(lambda: asked(stage, FIT).get("context") == 12_345 and not view.model.fit.waiting)
    assert view.sizes.context_slider._values[view.sizes.context_slider.slider.value()] == 12_345
    QTest.keyClicks(view.sizes.context, "99999999")
    assert not view.start.start.isEnabled()
    assert view.start.note.text().startswith("Context: ")
    # Numbers of what was typed on the way to the wrong one are shown as what they are.
    for said in (view.sizes.behind, view.plan._making):
        await stage.until(lambda said=said: "not for what is typed" in said.text())  # type: ignore[misc]
    assert view.sizes.behind.isVisible()
    assert "The command uses" in view.start.note.text()
    view.sizes.reset.click()
    assert not view.sizes.behind.isVisible()
    assert view.sizes.context.text() == ""
    assert not view.sizes.reset.isVisible()
    await stage.until(lambda: view.start.start.isEnabled())
    assert asked(stage, PLANS)["overrides"]["context"] is None


async def test_a_wheel_over_a_slider_changes_nothing(stage: Stage) -> None:
    view = await page(stage, "big-24")
    slider = view.sizes.context_slider.slider
    slider.setFocus()
    value = slider.value()
    event = QWheelEvent(
        QPointF(20, 10),
        QPointF(slider.mapToGlobal(QPoint(20, 10))),
        QPoint(0, 0),
        QPoint(0, 120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(slider, event)
    assert slider.value() == value


async def test_a_change_that_makes_it_fit_is_applied_by_a_click(stage: Stage) -> None:
    view = await page(stage, "big-24")
    view.model.set_value("context", 131_072)
    await stage.until(lambda: view.changes.isVisible())
    assert view.sizes.verdict.text() == "does not fit"
    assert "GiB are missing" in view.sizes.why.text()
    assert set(view.changes.buttons) == {"kv:fp8", "context"}, "other programs are ended by nobody here"
    assert "End the other programs" in visible_text(view.changes)
    view.changes.buttons["kv:fp8"].click()  # type: ignore[attr-defined]
    await stage.until(lambda: asked(stage, FIT).get("kv") == "fp8" and not view.model.fit.waiting)
    assert view.sizes.boxes["kv_cache_dtype"].currentData() == "fp8"
    await stage.until(lambda: asked(stage, PLANS)["overrides"].get("kv_cache_dtype") == "fp8")
    assert view.sizes.verdict.text() == "fits"
    assert not view.changes.isVisible()


async def test_kv_types_say_how_far_they_go(stage: Stage) -> None:
    view = await page(stage, "big-24")
    box = view.sizes.boxes["kv_cache_dtype"]
    labels = [box.itemText(place) for place in range(box.count())]
    assert any(label.startswith("fp8") and "up to" in label for label in labels), labels


async def test_advice_and_ceilings_stand_beside_what_is_measured(stage: Stage) -> None:
    view = await page(stage, "big-24")
    assert "50,000 tokens" in visible_text(view.advice)
    assert "reported from single 24 GB cards" in visible_text(view.advice)
    speed = visible_text(view.speed)
    assert "At most 48.5 tok/s for one stream" in speed
    assert "Not measured here" in speed
    assert "0 tok/s" not in speed.replace("48.5 tok/s", "")


async def test_a_preset_that_is_not_started_here_says_so_and_keeps_its_command(stage: Stage) -> None:
    view = await page(stage, "on-sglang")
    await stage.until(lambda: not view.model.planning)
    assert not view.start.start.isEnabled()
    assert view.start.equivalent_command.label.text() == "sndr launch on-sglang --render docker"
    assert view.start.note.text() == "This program does not start SGLang."
    assert "does not start SGLang" in view.start.start.toolTip()
    row = view.model.presets.row
    assert row is not None
    assert row.here[0] == "deployment only", "before anybody clicks it"
    fits = next(one.verdict for one in view.model.presets.every if one.ready)
    assert not replace(row, verdict=fits).ready
    assert "does not start SGLang" in visible_text(view.plan)
    assert not view.form.isVisible()


async def test_start_says_what_it_waits_for(stage: Stage) -> None:
    stage.host.plan_gate = asyncio.Event()
    stage.window.go("launch")
    view = stage.window.page
    assert isinstance(view, LaunchView)
    assert view.start.note.text() == "Reading what can be started…"
    assert view.start.note.text() in view.start.start.toolTip()
    await stage.until(lambda: view.model.subject is not None)
    assert (view.start.note.text(), view.start.start.isEnabled()) == ("Planning…", False)
    assert view.start.note.text() in view.start.start.toolTip()
    stage.host.plan_gate.set()
    await stage.until(view.start.start.isEnabled)
    assert view.start.note.text() == "Ready to start."


async def test_the_command_line_is_there_before_the_plan_is(stage: Stage) -> None:
    stage.host.refuse[PLANS] = Problem(
        reason=Reason.PRESET_CONFLICT, message="Two layers contradict each other."
    )
    view = await page(stage, "big-24")
    await stage.until(lambda: view.model.problem is not None)
    assert view.start.equivalent_command.label.text() == "sndr launch big-24"
    assert "Two layers contradict" in visible_text(view.plan)


async def test_what_stands_on_the_card_is_not_said_again_in_the_plan(stage: Stage) -> None:
    missing = preset_samples.missing()
    stage.host.refuse[PLANS] = Problem(
        reason=Reason.MODEL_FILE_MISSING, message=missing.message, fix=missing.fix
    )
    view = await page(stage, "big-24")
    await stage.until(lambda: view.model.problem is not None)
    assert not view.plan.isVisible()
    assert missing.message in visible_text(view.preset)


async def test_a_preset_for_gpus_offers_the_build_for_gpus(stage: Stage) -> None:
    view = await page(stage, "big-24", cuda=False)
    await stage.until(lambda: view.install.isVisible())
    assert "CUDA" in view.install.heading.text()


async def test_the_presets_are_judged_again_when_the_catalogue_changes(stage: Stage) -> None:
    view = await page(stage, "big-24")
    before = len(stage.host.sent("POST", VERDICTS))
    left = tuple(item for item in stage.host.presets.presets if item.preset.id != "big-24")
    stage.host.presets = PresetPage(seq=0, presets=left)
    stage.host.publish(PresetsChangedEvent())
    await stage.until(lambda: view.model.presets.total == 4)
    await stage.until(lambda: len(stage.host.sent("POST", VERDICTS)) > before)
    await stage.until(lambda: view.model.subject is not None and view.model.subject.id == "demo-llamacpp")


async def test_another_host_is_asked_for_its_presets(stage: Stage) -> None:
    view = await page(stage, "big-24")
    await stage.host.stop()
    await stage.until(lambda: not stage.connection.connected)
    assert view.start.note.text() == stage.connection.sentence
    assert stage.connection.sentence in view.start.start.toolTip()
    assert not view.start.start.isEnabled()
    assert len(view.model.presets.rows.shown) == 5, "what was known stays in sight"
    left = tuple(item for item in stage.host.presets.presets if item.preset.id != "big-long")
    stage.host.presets = PresetPage(seq=0, presets=left)
    await stage.host.start()
    stage.connection.retry()
    await stage.until(lambda: view.model.presets.total == 4)
    await stage.until(lambda: view.start.start.isEnabled())


async def test_verdicts_that_cannot_be_had_leave_the_list(stage: Stage) -> None:
    stage.host.refuse[VERDICTS] = Problem(reason=Reason.INTERNAL, message="The calculator failed.")
    stage.window.go("launch")
    view = stage.window.page
    assert isinstance(view, LaunchView)
    await stage.until(lambda: "The calculator failed." in view.subtitle.text())
    assert len(view.model.presets.rows.shown) == 5
    assert view.model.subject is None
    assert view.nothing.isVisible()
    assert view.start.note.text() == "Select a preset or a model first."
    view.presets.table.selectRow(1)
    assert view.preset.name.text() == "Big long"


async def test_models_stand_beside_presets_and_are_as_easy(stage: Stage) -> None:
    view = await page(stage)
    view.switcher.buttons[1].click()
    assert view.about.name.text() == "sndr-demo"
    assert view.table.chosen == 0
    assert not view.preset.isVisible()
    await stage.until(lambda: view.start.start.isEnabled() and asked(stage, PLANS)["model"] == "sndr-demo")
    await stage.until(lambda: asked(stage, FIT).get("model") == "sndr-demo")
    assert asked(stage, FIT)["context"] == 8192, "what the plan says"
    view.model.select("qwen3-8b")
    view.switcher.buttons[0].click()
    assert view.preset.name.text() == "Demo llamacpp"
    view.switcher.buttons[1].click()
    assert view.about.name.text() == "qwen3-8b", "what was chosen is chosen again"


async def test_what_is_known_of_a_preset_is_known_again(stage: Stage) -> None:
    view = await page(stage, "big-24")
    await stage.until(lambda: view.model.subject is not None and view.model.subject.drafts)
    view.switcher.buttons[1].click()
    view.switcher.buttons[0].click()
    assert view.model.subject is not None
    assert view.model.subject.drafts
    assert view.form.box("speculation").findData("mtp") >= 0


async def test_presets_that_cannot_be_read_are_read_again_on_demand(stage: Stage) -> None:
    stage.host.refuse["/v1/presets"] = Problem(
        reason=Reason.INTERNAL, message="The catalogue cannot be read."
    )
    stage.window.go("launch")
    view = stage.window.page
    assert isinstance(view, LaunchView)
    await stage.until(view.presets.again.isVisible)
    assert view.presets.empty.sentence.text() == "The catalogue cannot be read."
    stage.host.refuse.clear()
    view.presets.again.click()
    await stage.until(lambda: view.model.presets.total == 5)
    assert view.presets.table.isVisible()


async def test_a_machine_says_what_it_has(stage: Stage) -> None:
    view = await page(stage, gpus=2)
    said = visible_text(view.machine)
    for word in ("RTX 3090 #0", "RTX 3090 #1", "2 / 24 GiB", "RAM", "8 / 32 GiB", "llama.cpp", "vLLM"):
        assert word in said


async def test_every_control_of_launch_has_a_name(stage: Stage) -> None:
    view = await page(stage, "big-24")
    view.model.set_value("context", 131_072)
    await stage.until(lambda: view.changes.isVisible())
    for widget in view.findChildren(QWidget):
        if widget.focusPolicy() == Qt.FocusPolicy.NoFocus or not widget.isVisible():
            continue
        found = QAccessible.queryAccessibleInterface(widget)
        named = found is not None and found.text(QAccessible.Text.Name)
        inside = widget.parentWidget()
        assert named or (inside is not None and inside.focusProxy() is widget), widget


async def test_both_windows_show_the_panel_whole(stage: Stage) -> None:
    stage.host.fit = lambda asked: fit_samples.report(
        asked, devices=(fit_samples.device(0), fit_samples.device(1))
    )
    view = await page(stage, "big-24")
    for size in ((1280, 820), (900, 600)):
        stage.window.resize(*size)
        stage.window.grab()
        canvas = view.panel.widget()
        assert canvas is not None
        assert canvas.width() <= view.panel.viewport().width(), "nothing is cut off at the right"
        for kind in (ListKind.MODELS, ListKind.PRESETS):
            view.model.show_list(kind)
            stage.window.grab()
            right = view.panel.mapTo(view, view.panel.rect().topRight()).x()
            assert right <= view.width(), kind
        assert view.start.geometry().right() <= view.width()
        assert view.start.geometry().bottom() <= view.height()
