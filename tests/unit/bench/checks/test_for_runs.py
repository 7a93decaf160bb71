"""Checks that a speed has to pass: they strike it, or say why they could not be judged."""

from typing import Any

from engine_host.bench.checks.for_runs import failure, gate_of, parity_of
from engine_host.protocol.bench.checks import CheckName, Outcome
from engine_host.protocol.bench.lab import LabEngine
from tests.unit.asynchronous import run
from tests.unit.bench.checks.test_checks import Message, good, subject_of, without_calls


def engine(name: str = "e", **facts: Any) -> LabEngine:
    return LabEngine(address="s", model="m", id=name, model_path="/m.gguf", engine="llama.cpp", **facts)


def test_a_failed_check_names_its_reason() -> None:
    (check,) = run(gate_of(subject_of(without_calls), CheckName.TOOL_CALL, 0))
    assert "it calls no tool" in failure((check,))
    (check,) = run(gate_of(subject_of(good), CheckName.TOOL_CALL, 0))
    assert (check.outcome, failure((check,))) == (Outcome.PASSED, "")
    (check,) = run(gate_of(subject_of(good), CheckName.NEEDLE_SHORT, 1_000))
    assert check.outcome is Outcome.PASSED
    assert run(gate_of(subject_of(good), None, 1_000)) == ()
    (check,) = run(gate_of(subject_of(good), CheckName.NEEDLE_SHORT, 0))
    assert (check.outcome, bool(check.why)) == (Outcome.SKIPPED, True)


def test_equal_answers_are_asked_of_those_that_are_meant_to_give_them() -> None:
    def other(_body: Any) -> Message:
        return {"content": "Something else."}

    numbers = iter(range(100))

    def unsteady(_body: Any) -> Message:
        return {"content": f"{next(numbers)}"}

    same = run(parity_of(subject_of(good), subject_of(good), engine("a"), engine("b")))
    assert same.outcome is Outcome.PASSED
    wrong = run(parity_of(subject_of(other), subject_of(good), engine("a"), engine("b")))
    assert (wrong.outcome, "answered otherwise" in wrong.why) == (Outcome.FAILED, True)
    for changed in ({"settings": {"kv_type_k": "q8_0"}}, {"version": "b2"}, {"patches": ("a",)}):
        told = run(parity_of(subject_of(other), subject_of(good), engine("a"), engine("b", **changed)))
        assert (told.outcome, "may be rounding" in told.why) == (Outcome.SKIPPED, True)
        equal = run(parity_of(subject_of(good), subject_of(good), engine("a"), engine("b", **changed)))
        assert equal.outcome is Outcome.PASSED
    ports = {"settings": {"port": "8021"}}
    wrong = run(parity_of(subject_of(other), subject_of(good), engine("a"), engine("b", **ports)))
    assert wrong.outcome is Outcome.FAILED
    for verdict in (
        run(parity_of(subject_of(good), subject_of(unsteady), engine("a"), engine("b"))),
        run(parity_of(subject_of(other), subject_of(good), engine("a"), engine(""))),
    ):
        assert verdict.outcome is Outcome.SKIPPED
        assert verdict.why
