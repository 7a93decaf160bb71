"""Launch with the program's own catalogue, in the smallest window."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QWidget

from sndr_gui.views.launch.page import LaunchView
from tests.views.conftest import Stage
from tests.views.fakes.real_catalog import RealCatalog

# There are so many presets that one test of all of them would outlast a busy machine's patience.
_SHARES = 3


@pytest.fixture
def catalogue(stage: Stage, tmp_path: Path) -> Iterator[RealCatalog]:
    """The real catalogue behind the host."""
    made = RealCatalog(stage, tmp_path / "host")
    yield made
    made.store.close()


def beyond(view: LaunchView) -> list[str]:
    """Return the parts of the right side that end beyond its visible width."""
    port = view.panel.viewport()
    found = []
    for part in view.panel.findChildren(QWidget, "canvas")[0].findChildren(QWidget):
        right = part.mapTo(port, QPoint(part.width(), 0)).x()
        if part.isVisibleTo(view) and right > port.width():
            found.append(f"{type(part).__name__} {part.objectName()} ends at {right} of {port.width()}")
    return found


@pytest.mark.parametrize("share", range(_SHARES))
@pytest.mark.usefixtures("catalogue")
async def test_every_preset_ends_within_the_smallest_window(stage: Stage, share: int) -> None:
    stage.window.resize(900, 600)
    stage.window.go("launch")
    view = stage.window.page
    assert isinstance(view, LaunchView)
    await stage.until(lambda: view.model.presets.verdicts is not None)
    rows = list(view.model.presets.rows.shown)
    assert len(rows) >= 20
    wide = {}
    for row in rows[share::_SHARES]:
        preset = row.item.preset.id
        view.model.select_preset(preset)
        await stage.until(lambda: view.model.presets.detail is not None and not view.model.fit.waiting)
        view._refresh_below()
        view.form.more.setChecked(True)
        view.form._on_more()
        stage.window.grab()
        if out := beyond(view):
            wide[preset] = out
    assert not wide, wide
