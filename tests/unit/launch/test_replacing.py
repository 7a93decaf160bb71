"""A start that may not take the place of what runs."""

import pytest

from engine_host.core.errors import HostError
from engine_host.launch.replacing import refuse_replacing
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.errors import Reason
from tests.plan_samples import engine_of, plain_plan

PLAN = plain_plan()


def running(state: EngineState) -> Engine:
    return engine_of(PLAN, state, name="old")


@pytest.mark.parametrize("state", [EngineState.PREPARING, EngineState.STARTING, EngineState.READY])
def test_it_is_refused_beside_an_engine_that_lives_or_comes_up(state: EngineState) -> None:
    with pytest.raises(HostError, match="old runs already") as caught:
        refuse_replacing(PLAN, [running(state)])
    assert caught.value.reason is Reason.CONFLICT
    fix = caught.value.problem.fix
    assert fix is not None
    assert fix.command == "sndr run m --replace"


@pytest.mark.parametrize("state", [EngineState.DRAINING, EngineState.STOPPING])
def test_an_engine_that_goes_is_not_in_the_way(state: EngineState) -> None:
    refuse_replacing(PLAN, [running(state)])
    refuse_replacing(PLAN, [])
