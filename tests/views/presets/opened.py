"""Presets with its list or one preset open, as the tests of that page find it."""

from typing import TypeVar

from PySide6.QtWidgets import (
    QApplication,
    QDialog,
)

from engine_host.protocol.operations import table as ops
from engine_host.protocol.presets import SavePreset
from sndr_gui.views.presets.dialogs import SaveDialog
from sndr_gui.views.presets.page import PresetsView
from tests.views.conftest import Stage

Kind = TypeVar("Kind", bound=QDialog)
MINE = "format: 1\nid: mine\ntitle: Mine\nextends: demo-llamacpp\nsettings:\n  context: 4096  # enough\n"


async def page(stage: Stage) -> PresetsView:
    stage.window.go("presets")
    view = stage.window.page
    assert isinstance(view, PresetsView)
    await stage.until(lambda: view.model.page is not None and view.model.rows.total)
    return view


async def edited(stage: Stage, preset: str = "mine", text: str = MINE) -> PresetsView:
    """The editor of a preset of one's own that is saved."""
    view = await page(stage)
    await stage.session.client.call(ops.SAVE_PRESET, SavePreset(text=text), id=preset)
    await stage.until(lambda: view.model.item(preset) is not None)
    view.model.open(preset)
    await stage.until(lambda: view.model.editor.lint is not None and not view.model.editor.checking)
    return view


async def checked(stage: Stage, view: PresetsView) -> None:
    editor = view.model.editor
    await stage.until(
        lambda: not editor.checking and editor._edit_task is None and editor._check_task is None
    )


def dialog(kind: type[Kind]) -> Kind:
    """The open dialog of this kind."""
    return next(
        widget for widget in QApplication.topLevelWidgets() if isinstance(widget, kind) and widget.isVisible()
    )


async def save(stage: Stage, view: PresetsView) -> None:
    await checked(stage, view)
    view.pane.save.click()
    dialog(SaveDialog).save.click()
    await stage.until(lambda: not view.model.editor.dirty and not view.model.editor.saving)
