"""Plans of llama.cpp: how much of a prompt is read at once, on a processor and on a GPU."""

from typing import Any

import pytest

from engine_host.protocol.launch.plans import LaunchPlan, LaunchRequest, Layer
from tests.unit.asynchronous import run
from tests.unit.launch.models import server
from tests.unit.launch.plans.test_preset import PresetDesk, llama, settings  # noqa: F401


def planned(desk: PresetDesk, **overrides: Any) -> LaunchPlan:
    asked = {"model": "m", "overrides": {"streams": 1} | overrides}
    return run(desk.planner.plan(LaunchRequest.model_validate(asked)))


def batches(plan: LaunchPlan) -> list[str]:
    """The batch and the pass in the command line."""
    flags = ("--batch-size", "--ubatch-size")
    return [word for flag, word in zip(plan.argv, plan.argv[1:], strict=False) if flag in flags]


def test_a_processor_reads_small_batches_that_a_cancel_does_not_wait_long_for(llama: PresetDesk) -> None:  # noqa: F811
    plan = planned(llama)
    batch = settings(plan)["prompt_batch"]
    assert (batch.value, batch.layer) == (256, Layer.HARDWARE)
    assert "what is cancelled ends with its batch" in batch.why
    assert batches(plan) == ["256", "256"]


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"prompt_batch": 2048}, ["2048", "512"]),
        ({"prompt_batch": 64}, ["64", "64"]),
        ({"streams": 200, "speculation": "ngram-simple"}, ["256", "256"]),
        ({"speculation": "draft-mtp"}, []),
        ({"extra_arguments": ["--batch-size", "512"]}, ["512"]),
    ],
)
def test_what_is_said_is_kept(llama: PresetDesk, overrides: dict[str, Any], said: list[str]) -> None:  # noqa: F811
    assert batches(planned(llama, **overrides)) == said


def test_a_gpu_and_a_server_without_the_arguments_keep_their_own(llama: PresetDesk) -> None:  # noqa: F811
    without = server().flags - {"--ubatch-size"}
    for other in ({"devices": ("CUDA0",)}, {"flags": without}):
        llama.desk.server = other  # type: ignore[union-attr]
        plan = planned(llama)
        assert settings(plan)["prompt_batch"].value is None
        assert batches(plan) == []
