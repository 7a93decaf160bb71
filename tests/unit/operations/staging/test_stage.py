"""Refusals of stagings, in words about the machine that refuses."""

from engine_host.core.errors import HostError
from engine_host.operations.staging.stage import _not_there
from engine_host.protocol.errors import Reason


def test_a_model_that_is_not_there_is_said_of_that_machine() -> None:
    error = HostError(
        Reason.MODEL_FILE_MISSING,
        "There is no model 'nope'.",
        cause="Known are: a.",
        evidence={"wanted": "nope"},
    )
    told = _not_there("gpu1", "nope", error).problem
    assert "on gpu1" in told.message
    assert told.cause == "Known are: a."
    assert told.fix is not None
    assert told.fix.command == "sndr --host gpu1 models"
    other = HostError(Reason.MODEL_FILE_MISSING, "A draft is missing.", evidence={"wanted": "draft"})
    assert _not_there("gpu1", "nope", other) is other
