"""`sndr autostart`: shown, switched on and off."""

import asyncio
import json
from pathlib import Path

import pytest

from engine_host.core.event_log import EventLog
from engine_host.core.package_data import presets
from engine_host.core.settings import SettingsFile
from engine_host.operations.presets.catalog import PresetOperations
from tests.unit.cli.fake_host import FakeHost
from tests.unit.cli.test_commands import Sndr


def test_the_window_at_login(
    sndr: Sndr, host: FakeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue = PresetOperations(
        presets, tmp_path / "own", SettingsFile(tmp_path / "settings.toml"), EventLog(), lambda: ()
    )
    detail = asyncio.run(catalogue.detail("demo-llamacpp")).model_dump(mode="json")
    host.answers["GET /v1/presets/demo-llamacpp"] = (200, detail)
    missing = {
        "reason": "not_found",
        "message": "There is no preset nosuch.",
        "fix": {"text": "Did you mean demo?"},
    }
    host.answers["GET /v1/presets/nosuch"] = (404, {"error": missing})
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert sndr("autostart", "show")[1] == "window  off\nhost    off\n"
    code, out, _ = sndr("autostart", "window", "--preset", "demo-llamacpp")
    assert code == 0
    assert "on, with the preset demo-llamacpp" in out
    assert json.loads(sndr("autostart", "show", "--json")[1])["window"]["preset"] == "demo-llamacpp"
    code, out, err = sndr("autostart", "window", "--preset", "nosuch")
    assert (code, out) == (4, "")
    assert "Did you mean demo?" in err
    assert "with the preset demo-llamacpp" in sndr("autostart", "show")[1], "it stays as it was"
    assert sndr("autostart", "window", "--off")[0] == 0
    assert sndr("autostart", "show")[1].startswith("window  off")
    assert sndr("autostart", "window", "--off", "--preset", "x")[0] == 2
    assert sndr("autostart", "window", "--preset", "../x")[0] == 2
