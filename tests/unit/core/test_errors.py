"""Errors can be shown and sent, whatever value they are about."""

import ast
from functools import cache
from pathlib import Path

import engine_host
from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason


def test_a_wrong_value_of_any_length_is_cut() -> None:
    long = "x" * 100_000
    error = HostError(Reason.INTERNAL, long, cause=long, fix=long, evidence={"value": long, "list": [long]})
    assert len(error.problem.model_dump_json()) < 50_000
    assert str(error) == error.problem.message
    assert "more characters]" in error.problem.message


@cache
def _sentences() -> list[tuple[str, ast.Call]]:
    """The place and the call of each HostError whose message is a sentence of ours."""
    top = Path(engine_host.__file__).parent
    found = []
    for path in sorted(top.rglob("*.py")):
        text = path.read_text("utf-8")
        if "HostError(" not in text:
            continue
        for call in ast.walk(ast.parse(text)):
            named = (
                isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "HostError"
            )
            if named and isinstance(call, ast.Call) and len(call.args) > 1:
                said = call.args[1]
                is_tr = (
                    isinstance(said, ast.Call) and isinstance(said.func, ast.Name) and said.func.id == "tr"
                )
                if is_tr or isinstance(said, ast.Constant | ast.JoinedStr):
                    found.append((f"{path.relative_to(top)}:{call.lineno}", call))
    return found


def test_each_sentence_has_a_next_action_but_what_somebody_called_off() -> None:
    found = _sentences()
    assert len(found) > 300
    without = [
        place
        for place, call in found
        if all(given.arg != "fix" for given in call.keywords) and "CANCELLED" not in ast.dump(call.args[0])
    ]
    assert not without, "name what to do next: fix="


_HAPPENS = (
    *("ENGINE_START_TIMEOUT", "ENGINE_START_FAILED", "SSH_FAILED", "SSH_LOST"),
    *("DOWNLOAD_FAILED", "NOT_WRITABLE", "PORT_IN_USE", "HOST_GONE"),
)
_TELLS_WHY = {"error", "why", "detail", "message", "sentence"}
"""Values of a sentence that hold what another program said of it."""


def test_each_failure_that_comes_from_outside_has_a_likely_cause() -> None:
    found = [
        (place, call)
        for place, call in _sentences()
        if any(f"'{name}'" in ast.dump(call.args[0]) for name in _HAPPENS)
    ]
    assert len(found) > 8
    without = [
        place
        for place, call in found
        if all(given.arg != "cause" for given in call.keywords)
        and not {given.arg for given in getattr(call.args[1], "keywords", ())} & _TELLS_WHY
    ]
    assert not without, "say what is likely behind it: cause="


def test_what_models_on_demand_and_keys_refuse_has_a_cause() -> None:
    places = ("operations/on_demand/", "gateway/loading/", "core/keys/plain.py")
    found = [(place, call) for place, call in _sentences() if place.startswith(places)]
    assert len(found) > 6
    without = [
        place
        for place, call in found
        if all(given.arg != "cause" for given in call.keywords) and "CANCELLED" not in ast.dump(call.args[0])
    ]
    assert not without, "say why it is so: cause="


def test_what_is_refused_of_presets_that_others_need_has_a_cause() -> None:
    needed = (
        "comes with the program and cannot be removed",
        "extend it.",
        "means nothing to vLLM's CPU",
        "part {found} of",
    )
    found = [call for _, call in _sentences() if any(words in ast.dump(call.args[1]) for words in needed)]
    assert len(found) == len(needed)
    for call in found:
        assert {"cause", "fix"} <= {given.arg for given in call.keywords}, "say why it is so: cause="


def test_what_is_named_and_not_there_any_more_has_a_cause() -> None:
    needed = (
        "answered with HTTP status",
        "answered nothing",
        "is not being served",
        "There is no job",
        "There is no plan",
        "There is no conversation",
        "There is no key {which}",
        "There is no run",
        "did not answer {arguments}",
        "has no argument {flag}",
        "engine host was not found within",
        "The load of {load} was called off",
    )
    found = [call for _, call in _sentences() if any(words in ast.dump(call.args[1]) for words in needed)]
    assert len(found) >= len(needed)
    for call in found:
        assert {"cause", "fix"} <= {given.arg for given in call.keywords}, ast.dump(call.args[1])
