"""A start that may not take the place of what runs."""

from typing import Any

import pytest

from engine_host.core.errors import HostError
from engine_host.launch.replacing import changes, refuse_namesake, refuse_replacing
from engine_host.launch.resolution import Resolution
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.errors import Reason
from engine_host.protocol.launch.plans import LaunchPlan, Layer, Setting
from tests.plan_samples import engine_of, plain_plan, vllm_plan

PLAN = plain_plan(instead_of=[{"id": "engine-1", "name": "old"}], command="sndr run m --instead-of old")


def running(state: EngineState) -> Engine:
    return engine_of(PLAN, state, name="old")


@pytest.mark.parametrize("state", [EngineState.PREPARING, EngineState.STARTING, EngineState.READY])
def test_it_is_refused_beside_an_engine_that_lives_or_comes_up(state: EngineState) -> None:
    with pytest.raises(HostError, match="old runs already") as caught:
        refuse_replacing(PLAN, [running(state)])
    assert caught.value.reason is Reason.CONFLICT
    fix = caught.value.problem.fix
    assert fix is not None
    assert fix.command == "sndr run m --instead-of old"


def test_an_engine_beside_it_is_not_in_the_way() -> None:
    refuse_replacing(PLAN, [engine_of(PLAN, id="engine-2")])


@pytest.mark.parametrize("state", [EngineState.DRAINING, EngineState.STOPPING])
def test_an_engine_that_goes_is_not_in_the_way(state: EngineState) -> None:
    refuse_replacing(PLAN, [running(state)])
    refuse_replacing(PLAN, [])


def test_two_starts_of_one_name_at_one_moment_are_not_both_made() -> None:
    plan = plain_plan(beside=[{"id": "engine-3", "name": "twin"}])
    namesake = engine_of(plan, EngineState.PREPARING, id="engine-2")
    with pytest.raises(HostError, match="runs already") as caught:
        refuse_namesake(plan, [namesake])
    assert caught.value.problem.cause == "It was started at the same moment."
    # What the plan knows of, what leaves and what another start is about to end is no surprise.
    refuse_namesake(
        plan, [engine_of(plan, id="engine-3"), engine_of(plan, EngineState.STOPPING, id="engine-2")]
    )
    other = plain_plan(name="another", instead_of=[{"id": "engine-2", "name": plan.name}])
    refuse_namesake(
        plan, [engine_of(plan, id="engine-2"), engine_of(other, EngineState.PREPARING, id="engine-4")]
    )


def planned(plan: LaunchPlan, **values: Any) -> LaunchPlan:
    settings = tuple(Setting(name=name, value=one, layer=Layer.OVERRIDE) for name, one in values.items())
    return plan.model_copy(update={"settings": settings})


def told(plan: LaunchPlan, **values: Any) -> tuple[str, ...]:
    """The changes from an engine that runs by a plan to a start of the same engine with these values."""
    resolved = Resolution()
    for name, value in values.items():
        resolved.set(name, value, Layer.OVERRIDE)
    return changes(plan.engine, resolved, None, [engine_of(plan)])


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("speculation", "none", "off"),
        ("tool_parser", "off", None),
        ("reasoning_parser", None, "off"),
        ("dtype", "auto", None),
        ("tensor_parallel", None, 1),
    ],
)
def test_two_words_for_the_same_are_no_change(name: str, before: Any, after: Any) -> None:
    assert told(planned(vllm_plan(), **{name: before}), **{name: after}) == ()


def test_what_the_engine_does_otherwise_is_a_change() -> None:
    plan = planned(vllm_plan(), tool_parser="off", streams=4, extra_arguments=[])
    found = told(plan, tool_parser="hermes", streams=8, extra_arguments=["--seed", "3"])
    assert found == ("tool_parser: off → hermes", "streams: 4 → 8", "extra_arguments: none → --seed 3")
    assert told(planned(PLAN, flash_attention="auto"), flash_attention="off") == (
        "flash_attention: auto → off",
    )


def test_draft_tokens_are_a_change_only_where_something_drafts() -> None:
    silent = planned(vllm_plan(), speculation="off", draft_tokens=3)
    assert told(silent, speculation="off", draft_tokens=5) == ()
    assert told(silent, speculation="mtp", draft_tokens=5) == (
        "speculation: off → mtp",
        "draft_tokens: 3 → 5",
    )
