"""Presets in a real host: what one resolves to is what its plan does, and a person's own are kept."""

from engine_host.protocol.engines import EngineState
from engine_host.protocol.launch.plans import LaunchRequest, Layer
from engine_host.protocol.operations import table as ops
from engine_host.protocol.presets import (
    ResolvePreset,
    SavePreset,
)
from tests.integration.host.conftest import DEMO, RunningHost

MINE = "format: 1\nid: mine\ntitle: Mine\nextends: demo-llamacpp\nsettings:\n  context: 1024\n"


def test_a_plan_has_the_settings_of_its_preset(host: RunningHost) -> None:
    host.client.call(ops.SAVE_PRESET, SavePreset(text=MINE), id="mine")
    found = host.client.call(ops.RESOLVE_PRESET, ResolvePreset(preset="mine"))
    assert not found.conflicts
    request = LaunchRequest(model=str(DEMO), overrides=found.overrides, patches=found.patches)
    plan = host.client.call(ops.PLAN, request)
    assert (plan.context, plan.streams) == (1024, 2)
    settings = {setting.name: setting for setting in plan.settings}
    for resolved in found.settings:
        if resolved.by.layer is not Layer.ENGINE:
            assert settings[resolved.name].value == resolved.value
    assert plan.startable


def test_the_verified_preset_for_the_processor_runs(host: RunningHost) -> None:
    found = host.client.call(ops.RESOLVE_PRESET, ResolvePreset(preset="demo-llamacpp"))
    engine = host.start(overrides=found.overrides)
    assert engine.state is EngineState.READY
    assert engine.plan.context == 8192


def test_a_persons_presets_outlive_the_host(host: RunningHost) -> None:
    saved = host.client.call(ops.SAVE_PRESET, SavePreset(text=MINE), id="mine")
    assert saved.file == str(host.folders.config / "presets" / "mine.yaml")
    assert (host.folders.config / "presets" / "mine.yaml").read_text(encoding="utf-8") == MINE
    page = host.client.call(ops.PRESETS)
    assert page.faults == ()
    assert "mine" in {item.preset.id for item in page.presets}
    detail = host.client.call(ops.PRESET, id="mine")
    assert detail.item.extends == "demo-llamacpp"
