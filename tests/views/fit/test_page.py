"""The Fit page over the real calculator: sources of a model, hardware, changes, and the hub on request."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QComboBox, QLineEdit, QTableView, QWidget

from engine_host.core.package_data import resources
from engine_host.protocol.launch.fit import KV_TOKENS, Measured, Verdict
from sndr_gui.models.fit.form import FitForm, HardwareSource, ModelSource
from sndr_gui.views.fit.page import FitView
from sndr_gui.views.widgets.copying import CopyField
from tests.unit.library.fake_hub import COMMIT, FakeHub, fake_hub
from tests.views.conftest import Stage
from tests.views.fakes.real_catalog import RealCatalog
from tests.views.widgets.visible_text import visible_text

CONFIG = resources() / "models" / "sndr-demo" / "config.json"


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    """A fake of huggingface.co."""
    with fake_hub() as made:
        yield made


@pytest.fixture
def catalogue(stage: Stage, tmp_path: Path, hub: FakeHub) -> Iterator[RealCatalog]:
    """The real calculator behind the host."""
    made = RealCatalog(stage, tmp_path / "host", hub.endpoint)
    yield made
    made.store.close()


pytestmark = pytest.mark.usefixtures("catalogue")


async def page(stage: Stage) -> FitView:
    stage.window.go("fit")
    view = stage.window.page
    assert isinstance(view, FitView)
    await stage.until(lambda: view.model.catalog is not None and view.curve.curve is not None)
    return view


async def answered(stage: Stage, view: FitView) -> None:
    question = view.model.query
    await stage.until(lambda: question.request is not None and not question.waiting)


async def on_3090s(stage: Stage, count: int = 2) -> FitView:
    view = await page(stage)
    view.model.set_values(source=ModelSource.CATALOGUE, catalogue="qwen3.6-27b")
    view.model.set_values(variant="int4-autoround", where=HardwareSource.CARD, card="rtx-3090", count=count)
    view.model.set_values(context=65536, streams=4)
    await answered(stage, view)
    return view


async def test_a_model_of_the_catalogue_on_two_cards(stage: Stage) -> None:
    view = await on_3090s(stage)
    report = view.model.report
    assert report is not None
    assert report.verdict is Verdict.FITS
    assert view.figures[0].value.text() == "fits"
    assert view.figures[1].value.text() == f"{report.largest_context:,}"
    assert len(view.memory.bars.devices) == 2
    assert "weights" in visible_text(view.parts)
    assert "turboquant_k8v4" in visible_text(view.kinds)
    assert len(view.grid.cells) == len(report.grid)
    assert {cell.text() for cell in view.grid.cells.values()} <= {"fits", "tight", "no", "never"}
    assert view.advice.isVisible()
    assert "At most" in visible_text(view.speed)
    assert "not measured" in visible_text(view.speed).lower()
    assert view.equivalent_command.label.text() == (
        "sndr fit qwen3.6-27b/int4-autoround --hardware '2x rtx-3090' --context 65536 --streams 4"
    )
    assert view.subtitle.text() == "qwen3.6-27b/int4-autoround with vLLM on 2 × GeForce RTX 3090"


async def test_nothing_asks_for_a_choice_that_was_made(stage: Stage) -> None:
    view = await page(stage)
    await answered(stage, view)
    said: list[tuple[bool, str, bool]] = []

    def note() -> None:
        said.append((bool(view.model.form.missing), view.subtitle.text(), view.model._can_choose))

    view.model.form = FitForm()
    view.model.catalog, models = None, stage.state.models
    stage.state.models = None
    for signal in (view.model.changed, view.model.answered):
        signal.emit()
        note()
    assert "Choose" not in visible_text(view)
    stage.state.models = models
    view.model.changed.connect(note)
    view.model.load()
    await stage.until(lambda: view.model.catalog is not None)
    await answered(stage, view)
    assert not [one for one in said if "Choose" in one[1] and not one[0]], said
    assert "Choose a model." not in visible_text(view)


async def test_the_boxes_choose_what_is_asked(stage: Stage) -> None:
    view = await page(stage)
    for name, value in (
        ("source", "catalogue"),
        ("catalogue", "qwen3-8b"),
        ("where", "card"),
        ("card", "l4"),
    ):
        box = view.inputs.boxes[name]
        box.setCurrentIndex(box.findData(value))
        box.activated.emit(box.currentIndex())
    await answered(stage, view)
    assert view.inputs.card_cell.isVisibleTo(view.inputs)
    assert not view.inputs.here.isVisibleTo(view.inputs)
    assert view.equivalent_command.label.text().endswith("--hardware l4")
    assert view.model.report is not None
    assert view.model.report.devices[0].name.startswith("L4")


async def test_a_change_is_made_by_a_click_until_it_fits(stage: Stage) -> None:
    view = await on_3090s(stage, count=1)
    report = view.model.report
    assert report is not None
    assert report.verdict is not Verdict.FITS
    assert view.changes.isVisible()
    made = view.changes.buttons["gpus"]
    assert isinstance(made, QAbstractButton)
    made.click()
    await answered(stage, view)
    assert view.model.form.count == 2
    assert view.model.report is not None
    assert view.model.report.verdict is Verdict.FITS
    assert view.inputs.boxes["count"].currentData() == 2


async def test_a_smaller_variant_is_taken_over_by_a_click(stage: Stage) -> None:
    view = await page(stage)
    view.model.set_values(source=ModelSource.CATALOGUE, catalogue="qwen3.6-27b", variant="bf16")
    view.model.set_values(where=HardwareSource.CARD, card="rtx-3090", kv="fp8")
    await answered(stage, view)
    made = view.changes.buttons["weights"]
    assert isinstance(made, QAbstractButton)
    made.click()
    await answered(stage, view)
    form, report = view.model.form, view.model.report
    assert report is not None
    assert (form.variant, report.model) == ("int4-autoround", "qwen3.6-27b/int4-autoround")
    assert report.verdict in {Verdict.FITS, Verdict.TIGHT}
    assert view.inputs.boxes["variant"].currentData() == "int4-autoround"


async def test_without_a_variant_it_is_the_largest_that_fits(stage: Stage) -> None:
    view = await page(stage)
    view.model.set_values(source=ModelSource.CATALOGUE, catalogue="qwen3.6-27b")
    view.model.set_values(where=HardwareSource.CARD, card="rtx-3090", count=2)
    await answered(stage, view)
    report = view.model.report
    assert report is not None
    assert report.variants
    chosen = report.model.partition("/")[2]
    assert view.inputs.boxes["variant"].currentText() == f"Largest that fits ({chosen})"
    view.model.set_values(card="rtx-3060-12gb", count=1)
    await answered(stage, view)
    assert view.inputs.boxes["variant"].currentText().startswith("Smallest (")


async def test_what_is_known_is_asked_before_the_catalogue_is_read(stage: Stage) -> None:
    view = await page(stage)
    view.model.form = FitForm()
    view.model.query.clear()
    read = view.model.load
    view.model.load = lambda: None  # type: ignore[method-assign]  # A host that takes its time.
    try:
        view.model.set_shown(True)
        assert view.model.form.model
        assert view.model.query.request is not None
        assert "Choose" not in view.subtitle.text()
    finally:
        view.model.load = read  # type: ignore[method-assign]


async def test_offload_and_flash_attention_are_typed_by_hand(stage: Stage) -> None:
    view = await page(stage)
    view.model.set_values(source=ModelSource.CATALOGUE, catalogue="qwen3-8b", variant="q4-k-m")
    view.model.set_values(where=HardwareSource.CARD, card="rtx-3060-12gb", context=8192)
    await answered(stage, view)
    assert view.model.report is not None
    before = view.model.report.devices[0].needed
    view.inputs.more.click()
    QTest.keyClicks(view.inputs.numbers["gpu_layers"].edit, "20")
    await stage.until(lambda: view.model.form.gpu_layers == 20)
    await answered(stage, view)
    less = view.model.report.devices[0].needed
    assert less < before - (1 << 30)
    box = view.inputs.boxes["flash_attention"]
    box.setCurrentIndex(box.findData("off"))
    box.activated.emit(box.currentIndex())
    await answered(stage, view)
    # The scores of 32 heads for 512 tokens and 8,192 cells are 512 MiB, less what lay in their place.
    assert view.model.report.devices[0].needed > less + 400 * (1 << 20)
    words = "--flash-attention off --gpu-layers 20"
    assert view.equivalent_command.label.text().endswith(words)


async def test_a_config_and_figures_of_ones_own(stage: Stage) -> None:
    view = await page(stage)
    view.model.set_values(source=ModelSource.FILE, path=str(CONFIG), where=HardwareSource.FREE)
    await answered(stage, view)
    total = view.inputs.numbers["total"].edit
    total.selectAll()
    QTest.keyClicks(total, "8")
    await stage.until(lambda: view.model.form.total == 8)
    await answered(stage, view)
    report = view.model.report
    assert report is not None
    assert report.devices[0].total == 8 << 30
    assert "--gpu 8" in view.equivalent_command.label.text()
    # What cannot be taken stays as typed and is explained; the question stays as it was.
    total.selectAll()
    QTest.keyClicks(total, "lots")
    assert view.inputs.numbers["total"].error
    assert view.model.form.total == 8


async def test_a_preset_brings_its_own_settings(stage: Stage) -> None:
    await page(stage)
    stage.pages.open_fit("qwen3.6-27b-k8v4-2x24")
    view = stage.window.page
    assert isinstance(view, FitView)
    view.model.set_values(where=HardwareSource.CARD, card="rtx-3090", count=2)
    await answered(stage, view)
    report = view.model.report
    assert report is not None
    assert (report.preset, report.kv, report.streams) == ("qwen3.6-27b-k8v4-2x24", "turboquant_k8v4", 4)
    assert not view.inputs.engine_cell.isVisible()
    assert view.model.reported_speeds()
    assert "reported by others" in visible_text(view.reported)


async def test_what_was_set_becomes_a_preset_of_ones_own(stage: Stage) -> None:
    view = await page(stage)
    view.model.set_values(source=ModelSource.PRESET, preset="demo-llamacpp", context=2048, kv="q8_0")
    await answered(stage, view)
    view.inputs.edit.click()
    editor = stage.pages.presets.editor
    await stage.until(lambda: editor.is_open and editor.lint is not None and not editor.checking)
    await stage.until(lambda: "kv_type_v: q8_0" in editor.text)
    assert stage.window.current == "presets"
    assert editor.is_new
    assert "extends: demo-llamacpp" in editor.text
    assert "context: 2048" in editor.text


async def test_nothing_is_asked_of_the_hub_but_by_a_click(stage: Stage, hub: FakeHub) -> None:
    hub.models["org/name"] = (json.loads(CONFIG.read_text()), {"model.safetensors": 9_000_000})
    view = await page(stage)
    view.model.set_values(source=ModelSource.HUB, repository="org/name", where=HardwareSource.CARD, card="l4")
    await stage.until(lambda: view.model.unread)
    assert view.unread.isVisible()
    assert not view.problem.isVisible()
    assert view.equivalent_command.label.text() == "sndr fit org/name --hardware l4 --online"
    assert hub.requests == []
    view.read.click()
    assert view.read.text() == "Reading…"
    await stage.until(lambda: view.model.report is not None)
    assert len(hub.requests) == 2
    assert COMMIT[:12] in view.inputs.hub_note.text()
    assert not view.unread.isVisible()
    view.model.set_values(context=512)
    await answered(stage, view)
    assert len(hub.requests) == 2
    hub.errors["org/gated"] = (403, "GatedRepo")
    view.model.set_values(repository="org/gated")
    await stage.until(lambda: view.model.unread)
    view.read.click()
    await stage.until(lambda: view.problem.isVisible())
    assert "gated" in visible_text(view.problem)
    assert view.model.report is None


async def test_compared_starts_stand_side_by_side(stage: Stage, catalogue: RealCatalog) -> None:
    one = Measured(
        at=1.0, engine="llama.cpp", version="b1", gpu="processor", patches="", model="demo", part="KV cache",
        predicted=103, measured=100,
    )  # fmt: skip
    catalogue.store.put("fit", "engine-1 KV cache", one.at, one.model_dump_json())
    view = await page(stage)
    await stage.until(lambda: view.model.starts.total)
    assert view.starts.isVisibleTo(view)
    assert not view.no_starts.isVisibleTo(view)
    found = view.model.starts.shown[0]
    assert (found.predicted, found.measured, round(found.error, 2)) == (103, 100, 0.03)


async def test_compared_starts_and_their_command_have_a_place_each(
    stage: Stage, catalogue: RealCatalog
) -> None:
    one = Measured(
        at=1.0, engine="vllm", version="0.32.0", gpu="processor", patches="", model="demo", part=KV_TOKENS,
        predicted=621_226, measured=621_226,
    )  # fmt: skip
    for number in range(20):
        catalogue.store.put("fit", f"engine-{number}", one.at + number, one.model_dump_json())
    stage.window.resize(1278, 778)
    view = await page(stage)
    view.model.set_values(source=ModelSource.PRESET, preset="")
    await stage.until(lambda: view.model.starts.total and view.model.report is None)
    command = view.verified.findChild(CopyField)
    assert isinstance(command, CopyField)
    await stage.until(lambda: view.starts.geometry().bottom() < command.geometry().top())
    shown = {view.starts.model().index(0, place).data() for place in (4, 5)}
    assert shown == {"621,226"}, "tokens are counted"


async def test_an_unknown_file_is_a_problem_and_no_figure(stage: Stage) -> None:
    view = await page(stage)
    view.model.set_values(source=ModelSource.FILE, path="/nowhere/config.json")
    await stage.until(lambda: view.model.problem is not None)
    assert view.problem.isVisible()
    assert {card.value.text() for card in view.figures} == {"—"}


async def test_a_small_window_has_the_form_below_the_first_figures(stage: Stage) -> None:
    view = await on_3090s(stage)
    stage.window.resize(900, 600)
    await stage.until(lambda: view._left.isHidden())
    assert view.inputs.isVisibleTo(view)
    stage.window.resize(1280, 820)
    await stage.until(lambda: not view._left.isHidden())
    assert view.inputs.isVisibleTo(view)


async def test_every_control_has_a_name(stage: Stage) -> None:
    view = await on_3090s(stage)
    kinds = (QAbstractButton, QComboBox, QLineEdit, QTableView)
    for widget in view.findChildren(QWidget):
        if (
            isinstance(widget, kinds)
            and widget.isVisibleTo(view)
            and not widget.objectName().startswith("qt_")
        ):
            found = QAccessible.queryAccessibleInterface(widget)
            name = found.text(QAccessible.Text.Name)
            assert name, f"{type(widget).__name__} {widget.objectName()} in {type(widget.parent()).__name__}"


async def test_a_wide_window_has_cards_beside_each_other(stage: Stage) -> None:
    view = await on_3090s(stage)
    await answered(stage, view)
    pairs = ((view.kinds, view.curve), (view.grid, view.speed), (view.known, view.verified))
    stage.window.resize(2560, 1440)
    await stage.until(
        lambda: all(left.y() == right.y() and left.geometry().right() < right.x() for left, right in pairs)
    )
    stage.window.resize(1280, 820)
    await stage.until(lambda: all(left.geometry().bottom() < right.y() for left, right in pairs))
