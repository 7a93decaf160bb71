"""A damaged file of the window's settings: told once, untouched until it is mended as a person chooses."""

from pathlib import Path

from PySide6.QtWidgets import QApplication

from sndr_gui.host.notices import Notice
from sndr_gui.kit.look.choices import ThemeChoice
from sndr_gui.kit.settings import SettingsFile
from sndr_gui.views.settings.damaged_window import DamagedSettings, tell
from tests.views.conftest import Stage


def opened(stage: Stage, path: Path) -> DamagedSettings:
    """Return the dialog that the notice of the start leads to."""
    told: list[Notice] = []
    stage.notices.posted.connect(told.append)
    tell(stage.window, SettingsFile(path), stage.notices)
    assert "leaves the file as it is" in told[0].text
    assert told[0].action is not None
    told[0].action()
    return next(one for one in QApplication.topLevelWidgets() if isinstance(one, DamagedSettings))


async def test_a_wrong_value_is_repaired_when_asked(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "own" / "window.json"
    path.parent.mkdir()
    path.write_text('{\n  "theme": "dark",\n  "scale": 300\n}')
    dialog = opened(stage, path)
    assert dialog.what.text().startswith("Line 3: scale is none of")
    dialog.later.click()
    assert path.read_text() == '{\n  "theme": "dark",\n  "scale": 300\n}'
    dialog = DamagedSettings(stage.window, SettingsFile(path), stage.notices)
    dialog.repair.click()
    assert SettingsFile(path).current.theme is ThemeChoice.DARK
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["window.json", "window.json.damaged"]


async def test_what_cannot_be_read_is_set_aside_when_asked(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "own" / "window.json"
    path.parent.mkdir()
    path.write_text('{\n  "theme" "dark"')
    dialog = opened(stage, path)
    assert dialog.what.text().startswith("Line 2: ")
    assert not dialog.repair.isEnabled()
    dialog.aside.click()
    assert SettingsFile(path).damage is None
    assert path.with_name("window.json.damaged").read_text() == '{\n  "theme" "dark"'


async def test_a_folder_that_cannot_be_written_is_told(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "own" / "window.json"
    path.parent.mkdir()
    path.write_text("[]")
    dialog = opened(stage, path)
    path.unlink()
    dialog.aside.click()
    assert "could not be saved" in dialog.failure.text()
    dialog.reject()
