"""A relaunch asks for the same model in the same engine, with the overrides of that start."""

from engine_host.protocol.engines import EngineState
from engine_host.protocol.launch.plans import EngineKind, Layer, ServerChoice, Setting
from engine_host.protocol.patches import PatchChoice, PatchDecision, PatchReason, PlannedPatches
from sndr_gui.models.window.actions import request_of
from tests.plan_samples import engine_of, vllm_plan


def test_a_start_of_vllm_is_asked_for_again_as_it_was_asked_for() -> None:
    out = [("a", PatchReason.LEFT_OUT), ("b", PatchReason.WRONG_GPU)]
    plan = vllm_plan(
        model_path="/m",
        name="public",
        settings=(
            Setting(name="name", value="public", layer=Layer.MODEL),
            Setting(name="installation", value="0.26.0-cpu", layer=Layer.OVERRIDE),
            Setting(name="eager", value=False, layer=Layer.OVERRIDE),
            Setting(name="tool_parser", value="off", layer=Layer.OVERRIDE),
            Setting(name="streams", value=8, layer=Layer.ENGINE),
        ),
        streams=8,
        context=1024,
        installation="0.26.0-cpu",
        patches=PlannedPatches(
            digest="d",
            chosen=("c",),
            left_out=tuple(PatchDecision(patch=name, reason=reason) for name, reason in out),
        ),
        choice=PatchChoice(off=("a",)),
    )
    request = request_of(engine_of(plan, EngineState.FAILED))
    assert (request.engine, request.installation, request.server) == (
        EngineKind.VLLM,
        "0.26.0-cpu",
        ServerChoice.AUTO,
    )
    # What was on by the settings is for the settings to say again: a switch holds from the next start.
    assert request.patches == PatchChoice(off=("a",))
    assert request.name is None, "the model's own name needs no saying"
    given = request.overrides.model_dump(exclude_defaults=True)
    assert given == {"eager": False, "tool_parser": "off"}


def test_the_same_again_is_the_same_preset_with_its_model() -> None:
    plan = vllm_plan(model_path="/m", name="public", settings=(), streams=1, context=1024, preset="demo-vllm")
    request = request_of(engine_of(plan, EngineState.FAILED))
    assert (request.preset, request.model) == ("demo-vllm", plan.model)
    plain = plan.model_copy(update={"preset": ""})
    assert request_of(engine_of(plain, EngineState.FAILED)).preset is None
