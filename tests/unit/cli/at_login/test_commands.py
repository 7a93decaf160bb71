"""`sndr autostart`: shown, switched on and off."""

import json
from pathlib import Path

import pytest

from tests.unit.cli.test_commands import Sndr


def test_the_window_at_login(sndr: Sndr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert sndr("autostart", "show")[1] == "window  off\nhost    off\n"
    code, out, _ = sndr("autostart", "window", "--preset", "demo")
    assert code == 0
    assert "on, with the preset demo" in out
    assert json.loads(sndr("autostart", "show", "--json")[1])["window"]["preset"] == "demo"
    assert sndr("autostart", "window", "--off")[0] == 0
    assert sndr("autostart", "show")[1].startswith("window  off")
    assert sndr("autostart", "window", "--off", "--preset", "x")[0] == 2
    assert sndr("autostart", "window", "--preset", "../x")[0] == 2
