"""Errors can be shown and sent, whatever value they are about."""

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason


def test_a_wrong_value_of_any_length_is_cut() -> None:
    long = "x" * 100_000
    error = HostError(Reason.INTERNAL, long, cause=long, fix=long, evidence={"value": long, "list": [long]})
    assert len(error.problem.model_dump_json()) < 50_000
    assert str(error) == error.problem.message
    assert "more characters]" in error.problem.message
