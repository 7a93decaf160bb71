"""Tooltips over text from outside: what looks like HTML is shown sign by sign."""

import ast
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import Qt as GuiQt
from PySide6.QtGui import QTextDocument
from PySide6.QtWidgets import QCheckBox, QLabel, QTableView, QWidget

from engine_host.protocol.engines import EngineState, RequestState
from engine_host.protocol.events import EngineRequestEvent
from engine_host.protocol.launch.plans import Layer, Setting
from engine_host.protocol.patches import PlannedPatches
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.views.launch.page import LaunchView
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.labels import ElidedLabel
from tests.views.conftest import Stage
from tests.views.samples import host as samples

WINDOW = Path(__file__).parents[3] / "sndr_gui"
OUTSIDE = 'x <h1>Big</h1> <img src="file:///none"> & more'


def read(tip: str) -> str:
    """A tooltip as a person reads it."""
    if not GuiQt.mightBeRichText(tip):
        return tip
    document = QTextDocument()
    document.setHtml(tip)
    return document.toPlainText()


def is_plain(text: ast.expr) -> bool:
    """Return True for a literal, its translation, and for what was made by a function that formats nothing.

    `typed_for` adds the name of a host to a tooltip that was made so.
    """
    if isinstance(text, ast.IfExp):
        return is_plain(text.body) and is_plain(text.orelse)
    if isinstance(text, ast.Call) and isinstance(text.func, ast.Name):
        made = {"tip", "plain_tooltip", "typed_for"}
        return text.func.id in made or (text.func.id == "tr" and not text.keywords and is_plain(text.args[0]))
    return isinstance(text, ast.Constant)


def test_no_tooltip_is_set_as_it_comes() -> None:
    calls = [
        (f"{path.relative_to(WINDOW)}:{node.lineno}", node.args[0])
        for path in WINDOW.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "setToolTip"
    ]
    assert len(calls) > 50
    found = [where for where, text in calls if not is_plain(text)]
    # It changes keys inside a tooltip that was made so.
    assert [where.split(":")[0] for where in found] == ["views/shortcuts/rebinding.py"]


@pytest.mark.usefixtures("qapp")
@pytest.mark.parametrize("text", ["plain", "a & b", "a &lt;b", OUTSIDE, "two  spaces <b>\nand\n  a third"])
def test_every_sign_is_read(text: str) -> None:
    # Qt's own text of a document has a sign of its own for the end of a line.
    assert read(plain_tooltip(text)).replace("\u2028", "\n") == text


@pytest.mark.usefixtures("qapp")
def test_labels_commands_and_buttons_format_nothing() -> None:
    label = ElidedLabel(OUTSIDE)
    label.resize(30, 20)
    label.grab()
    command = CopyField()
    command.set_content(OUTSIDE)
    pushed = button("Go", hint="Apply", command=OUTSIDE)
    shown = [label.toolTip(), command.findChildren(QLabel)[0].toolTip(), pushed.toolTip()]
    assert [read(tip).replace("\u2028", "\n").split("\n")[-1] for tip in shown] == [OUTSIDE] * 3


async def test_the_name_of_a_client_formats_nothing(stage: Stage) -> None:
    stage.host.set_engine(samples.engine(EngineState.READY))
    await stage.until(lambda: stage.state.running)
    stage.window.go("monitor")
    stage.host.publish(EngineRequestEvent(request=samples.request(RequestState.DECODE, client=OUTSIDE)))
    table = stage.window.page.findChild(QTableView)
    assert table is not None
    model = table.model()
    await stage.until(lambda: model.rowCount())
    tips = [
        str(model.data(model.index(0, column), Qt.ItemDataRole.ToolTipRole) or "")
        for column in range(model.columnCount())
    ]
    assert any(OUTSIDE in read(tip) for tip in tips)


async def test_launch_formats_nothing_of_a_model_its_plan_and_its_patches(stage: Stage) -> None:
    stage.host.plan = samples.vllm_plan(
        command=f"sndr run {OUTSIDE}",
        settings=(Setting(name="name", value=OUTSIDE, layer=Layer.OVERRIDE),),
        patches=PlannedPatches(digest="d", chosen=(OUTSIDE,)),
    )
    chosen = samples.model("outside", format="safetensors", path=OUTSIDE, quantization=None)
    stage.state.set_models(samples.vllm_models().model_copy(update={"models": (chosen,)}))
    stage.window.go("launch")
    view = stage.window.page
    assert isinstance(view, LaunchView)
    view.model.select("outside")
    await stage.until(lambda: view.model.plan is not None and OUTSIDE in view.plan.patches.ticks)
    assert read(view.about.name.toolTip()) == OUTSIDE
    assert OUTSIDE in read(view.start.start.toolTip())
    tick = view.plan.patches.ticks[OUTSIDE]
    assert isinstance(tick, QCheckBox)
    assert read(tick.toolTip()).replace("\u2028", "\n") == f"{OUTSIDE}\nsndr run MODEL --without {OUTSIDE}"
    tips = [read(part.toolTip()) for part in view.plan.findChildren(QWidget)]
    assert tips.count(OUTSIDE) == 2, "the value of the setting, and the title of the patch"
