"""What "start it again" asks for: the same model in the same engine, with what was given for that start."""

from engine_host.protocol import (
    Engine,
    EngineKind,
    EngineState,
    LaunchPlan,
    Layer,
    PatchDecision,
    PatchReason,
    PlannedPatches,
    ServerChoice,
    Setting,
)
from sndr_gui.actions import request_of


def test_a_start_of_vllm_is_asked_for_again_with_its_patches() -> None:
    out = [("a", PatchReason.LEFT_OUT), ("b", PatchReason.WRONG_GPU)]
    plan = LaunchPlan(
        id="p",
        fingerprint="",
        created_at=0,
        model="m",
        model_path="/m",
        name="public",
        engine="vllm",
        server=ServerChoice.VENV,
        server_version="",
        argv=(),
        environment={},
        settings=(
            Setting(name="installation", value="0.26.0-cpu", layer=Layer.OVERRIDE),
            Setting(name="eager", value=False, layer=Layer.OVERRIDE),
            Setting(name="tool_parser", value="off", layer=Layer.OVERRIDE),
            Setting(name="streams", value=8, layer=Layer.ENGINE),
        ),
        streams=8,
        context=1024,
        speculation="off",
        keep=False,
        installation="0.26.0-cpu",
        patches=PlannedPatches(
            digest="d",
            chosen=("c",),
            left_out=tuple(PatchDecision(patch=name, reason=reason) for name, reason in out),
        ),
        findings=(),
        command="",
    )
    engine = Engine(
        id="e",
        name="public",
        engine="vllm",
        server=ServerChoice.VENV,
        server_version="",
        state=EngineState.FAILED,
        plan=plan,
        created_at=0,
    )
    request = request_of(engine)
    assert (request.engine, request.installation, request.server) == (
        EngineKind.VLLM,
        "0.26.0-cpu",
        ServerChoice.AUTO,
    )
    assert (request.patches.off, request.patches.on) == (("a",), ("c",))
    given = request.overrides.model_dump(exclude_defaults=True)
    assert given == {"eager": False, "tool_parser": "off"}
