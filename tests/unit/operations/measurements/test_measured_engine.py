"""What a run keeps of the engine that it measured."""

from pathlib import Path

from engine_host.operations.measurements.measured_engine import facts
from engine_host.protocol.launch.plans import Layer, Setting
from tests.plan_samples import engine_of, plain_plan


def test_the_values_of_a_persons_variables_are_not_kept() -> None:
    words = (
        "BILLING=kassel-777-zebra",
        "GGML_CUDA_FORCE_MMQ=1",
        "HF_TOKEN=hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345",
    )
    plan = plain_plan().model_copy(
        update={
            "command": "sndr run m " + " ".join(f"--env {word}" for word in words),
            "argv": ("server", "--api-key", "zebra-key-123", "--port", "1"),
            "settings": (Setting(name="variables", value=list(words), layer=Layer.USER),),
        }
    )
    kept = facts(engine_of(plan), Path("/run"))
    text = kept.model_dump_json()
    assert not [secret for secret in ("kassel", "hf_Ab", "zebra-key") if secret in text]
    assert kept.settings["variables"] == "BILLING=[redacted] GGML_CUDA_FORCE_MMQ=1 HF_TOKEN=[redacted]"
    assert kept.command.startswith("sndr run m --env BILLING=[redacted] --env GGML_CUDA_FORCE_MMQ=1")
    assert kept.argv == ("server", "--api-key", "[redacted]", "--port", "1")
