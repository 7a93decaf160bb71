"""Starts that came to no plan: what was asked for is kept, and nothing is made up."""

import pytest

from engine_host.engines.beginnings import is_refusal, names_nothing, new_engine, unplanned
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.engines import EngineState
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.launch.plans import EngineKind, LaunchRequest


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        (LaunchRequest(model="/models/a b.gguf"), "a b.gguf"),
        (LaunchRequest(model="/models/folder/"), "folder"),
        (LaunchRequest(model="\x1b[31m/../x", name="mine"), "mine"),
        (LaunchRequest(preset="coder", engine=EngineKind.VLLM), "coder"),
        (LaunchRequest(), ""),
    ],
)
def test_what_was_asked_for_is_kept(request_: LaunchRequest, name: str) -> None:
    request_ = request_.model_copy(update={"overrides": Overrides(context=4096)})
    plan = unplanned(request_, "sndr run x")
    assert (plan.name, plan.model, plan.engine) == (name, request_.model, request_.engine.value)
    assert (plan.argv, plan.context, plan.server_version) == ((), 0, ""), "nothing was computed"
    settings = {one.name: one.value for one in plan.settings}
    assert settings["context"] == 4096


def test_a_refusal_is_told_from_a_death() -> None:
    problem = Problem(reason=Reason.NOT_GGUF, message="It is none.")
    engine = new_engine(unplanned(LaunchRequest(model="m"), "sndr run m"))
    assert not is_refusal(engine, "m", Reason.NOT_GGUF)
    failed = engine.model_copy(update={"state": EngineState.FAILED, "problem": problem})
    assert is_refusal(failed, "m", Reason.NOT_GGUF)
    assert not is_refusal(failed, "m", Reason.OUT_OF_MEMORY)
    assert not is_refusal(failed, "other", Reason.NOT_GGUF)
    died = failed.model_copy(update={"stages": ({"name": "Start process", "started_at": 1.0},)})
    assert not is_refusal(died, "m", Reason.NOT_GGUF)


@pytest.mark.parametrize(
    ("request_", "reason", "evidence", "mistake"),
    [
        (LaunchRequest(model="nosuch"), Reason.MODEL_FILE_MISSING, {"wanted": "nosuch"}, True),
        (LaunchRequest(preset="nosuch"), Reason.NOT_FOUND, {}, True),
        (LaunchRequest(model="/was/here.gguf"), Reason.MODEL_FILE_MISSING, {"path": "/was/here.gguf"}, False),
        (LaunchRequest(model="/tmp"), Reason.MODEL_FILE_MISSING, {"path": "/tmp", "holds": ""}, True),
        (LaunchRequest(preset="coder"), Reason.MODEL_FILE_MISSING, {"wanted": "weights"}, False),
        (LaunchRequest(preset="coder"), Reason.MODEL_FILE_MISSING, {"holds": ""}, False),
        (LaunchRequest(model="damaged"), Reason.GGUF_TRUNCATED, {}, False),
        (LaunchRequest(model="large"), Reason.OUT_OF_MEMORY, {}, False),
    ],
)
def test_a_mistake_in_a_name_is_told_from_a_start_that_failed(
    request_: LaunchRequest, reason: Reason, evidence: dict[str, str], mistake: bool
) -> None:
    problem = Problem(reason=reason, message="It is refused.", evidence=evidence)
    assert names_nothing(request_, problem) is mistake
