"""Presets in a real host: what one resolves to is what its plan does, and a person's own are kept."""

from engine_host.protocol.engines import EngineState
from engine_host.protocol.plans import LaunchPlan, LaunchRequest, Layer
from engine_host.protocol.presets import (
    PresetDetail,
    PresetPage,
    ResolvedPreset,
    ResolvePreset,
    SavedPreset,
    SavePreset,
)
from tests.integration.host.conftest import DEMO, RunningHost

MINE = "format: 1\nid: mine\ntitle: Mine\nextends: demo-llamacpp\nsettings:\n  context: 1024\n"


def test_a_plan_has_the_settings_of_its_preset(host: RunningHost) -> None:
    host.client.put("/v1/presets/mine", SavedPreset, SavePreset(text=MINE))
    found = host.client.post("/v1/presets/resolve", ResolvedPreset, ResolvePreset(preset="mine"))
    assert not found.conflicts
    request = LaunchRequest(model=str(DEMO), overrides=found.overrides, patches=found.patches)
    plan = host.client.post("/v1/plans", LaunchPlan, request)
    assert (plan.context, plan.streams) == (1024, 2)
    settings = {setting.name: setting for setting in plan.settings}
    for resolved in found.settings:
        if resolved.by.layer is not Layer.ENGINE:
            assert settings[resolved.name].value == resolved.value
    assert plan.startable


def test_the_verified_preset_for_the_processor_runs(host: RunningHost) -> None:
    found = host.client.post("/v1/presets/resolve", ResolvedPreset, ResolvePreset(preset="demo-llamacpp"))
    engine = host.start(overrides=found.overrides)
    assert engine.state is EngineState.READY
    assert engine.plan.context == 8192


def test_a_persons_presets_outlive_the_host(host: RunningHost) -> None:
    saved = host.client.put("/v1/presets/mine", SavedPreset, SavePreset(text=MINE))
    assert saved.file == str(host.folders.config / "presets" / "mine.yaml")
    assert (host.folders.config / "presets" / "mine.yaml").read_text(encoding="utf-8") == MINE
    page = host.client.get("/v1/presets", PresetPage)
    assert page.faults == ()
    assert "mine" in {item.preset.id for item in page.presets}
    detail = host.client.get("/v1/presets/mine", PresetDetail)
    assert detail.item.extends == "demo-llamacpp"
