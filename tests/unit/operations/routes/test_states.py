"""The state of a route's targets, what would make each answer, and the findings."""

from typing import Any

import pytest

from engine_host.core.errors import HostError
from engine_host.gateway.directory import Target
from engine_host.gateway.routing.seen import Seen
from engine_host.operations.routes.states import Known, refuse_unknown, status_of
from engine_host.protocol.endpoint.routes import Provider, Route, RouteTargets, TargetState
from engine_host.protocol.errors import Reason

PROVIDER = Provider(url="https://api.example.com/v1", model="large", context=4096)
RUNNING = Target("e", "a", 1, 4096, 1.0, socket="/a", stands_for=("qwen",))


def route(name: str = "r", **targets: Any) -> Route:
    return Route(id=name, targets=RouteTargets(**targets), changed_at=1.0)


def known(**changes: Any) -> Known:
    parts: dict[str, Any] = {
        "running": (RUNNING,),
        "starting": ("soon",),
        "startable": {"preset"},
        "on_demand": lambda name: name == "asked",
        "seen": lambda _: Seen(),
    }
    return Known(**(parts | changes))


def test_each_state_of_an_engine() -> None:
    status = status_of(route(engines=("a", "soon", "asked", "preset", "nothing")), known())
    assert [target.state for target in status.targets] == [
        TargetState.RUNS, TargetState.STARTING, TargetState.ON_DEMAND, TargetState.NOT_RUNNING,
        TargetState.UNKNOWN,
    ]  # fmt: skip
    assert [target.command for target in status.targets[3:]] == [
        "sndr run preset",
        "sndr run MODEL --name nothing",
    ]
    assert status.answers
    assert [finding.id for finding in status.findings] == ["route.target_unknown"]


def test_an_engine_of_a_machine_that_was_removed_is_not_started_here() -> None:
    (target,) = status_of(route(engines=("gpu/m",)), known()).targets
    assert (target.state, target.command) == (TargetState.UNKNOWN, "sndr host add gpu USER@HOST")


def test_an_engine_by_its_model() -> None:
    status = status_of(route(engines=("qwen",)), known())
    assert (status.targets[0].state, status.targets[0].detail) == (TargetState.RUNS, "as a")
    assert status.findings == ()


def test_a_model_that_a_request_loads_answers() -> None:
    assert status_of(route(engines=("asked",)), known()).answers is None
    assert not status_of(route(engines=("preset",)), known()).answers
    assert not status_of(route(engines=("soon",)), known()).answers


def test_a_near_name_is_said() -> None:
    found = status_of(route(engines=("preseta",)), known()).findings[0]
    assert found.message.endswith("has that name; preset is alike.")


def test_a_name_for_a_shell_is_quoted() -> None:
    status = status_of(route(engines=("a; rm -rf ~",)), known())
    assert status.targets[0].command == "sndr run MODEL --name 'a; rm -rf ~'"


def test_an_id_that_hides_an_engine_is_said() -> None:
    found = status_of(route("a", engines=("preset",)), known()).findings
    assert [one.id for one in found] == ["route.hides_engine"]
    assert status_of(route("a", engines=("a",)), known()).findings == ()


@pytest.mark.parametrize("name", ["soon", "asked"])
def test_an_id_that_will_hide_an_engine_is_said(name: str) -> None:
    found = status_of(route(name, engines=("preset",)), known()).findings
    assert [one.id for one in found] == ["route.hides_engine"]
    assert "starts, or is loaded on demand" in found[0].message


def test_a_name_that_nobody_knows_is_refused_with_those_alike() -> None:
    refuse_unknown("r", ("a", "qwen", "soon", "asked", "preset"), known())
    with pytest.raises(HostError) as refused:
        refuse_unknown("r", ("a", "preseta"), known())
    problem = refused.value.problem
    assert (problem.reason, problem.evidence["near"]) == (Reason.NOT_FOUND, ["preset"])
    assert problem.fix is not None
    assert problem.fix.command == "sndr routes set r preset"
    with pytest.raises(HostError) as hostile:
        refuse_unknown("r", ("$(rm -rf ~)",), known())
    assert "--anyway" in hostile.value.problem.sentence()


def test_a_host_that_is_not_there_is_named() -> None:
    with pytest.raises(HostError) as refused:
        refuse_unknown("r", ("gpuX/preset",), known())
    problem = refused.value.problem
    assert "There is no host 'gpuX'" in problem.message
    assert problem.evidence["near"] == [], "a preset of this machine is not meant"
    assert problem.fix is not None
    assert problem.fix.command == "sndr host list"
    refuse_unknown("r", ("maker/model",), known(startable={"maker/model"}))


def test_a_provider() -> None:
    closed = status_of(route(provider=PROVIDER), known())
    assert (closed.answers, closed.targets[0].state) == (False, TargetState.NOT_ALLOWED)
    assert closed.targets[0].command == "sndr routes set r --allow-remote"
    allowed = status_of(route(provider=PROVIDER, allow_remote=True), known())
    assert (allowed.answers, allowed.targets[0].state) == (None, TargetState.ALLOWED)
    assert allowed.targets[0].name == "large at api.example.com"
    beside = route(engines=("preset",), provider=PROVIDER, allow_remote=True)
    assert status_of(beside, known()).answers is False, "it is asked with fallback alone"
    keyed = PROVIDER.model_copy(update={"key_variable": "SNDR_NO_SUCH_VARIABLE"})
    missing = status_of(route(provider=keyed, allow_remote=True), known())
    assert (missing.answers, missing.targets[0].state) == (False, TargetState.KEY_MISSING)


@pytest.mark.parametrize(
    ("seen", "answers", "state"),
    [
        (Seen(), None, TargetState.ALLOWED),
        (Seen(answered_at=2.0), True, TargetState.ANSWERED),
        (Seen(answered_at=2.0, failed_at=3.0, failure="no connection"), False, TargetState.FAILED),
        (Seen(answered_at=4.0, failed_at=3.0, failure="no connection"), True, TargetState.ANSWERED),
    ],
)
def test_of_a_provider_only_what_was_seen_is_said(
    seen: Seen, answers: bool | None, state: TargetState
) -> None:
    status = status_of(route(provider=PROVIDER, allow_remote=True), known(seen=lambda _: seen))
    target = status.targets[0]
    assert (status.answers, target.state) == (answers, state)
    assert (target.answered_at, target.failed_at, target.failure) == (
        seen.answered_at, seen.failed_at, seen.failure,
    )  # fmt: skip
