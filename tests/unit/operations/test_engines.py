"""A start of what somebody else asks for: refused without consent, wherever it comes from."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.store import Store
from engine_host.engines.beginnings import unplanned
from engine_host.engines.last_ran import LastRan
from engine_host.engines.manager import EngineManager
from engine_host.operations.engines import EngineOperations
from engine_host.operations.plans import PlanOperations
from engine_host.operations.presets.consents import PresetConsents, sha256
from engine_host.protocol.engines import Engine
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.launch.consents import ConsentNeeded, Demand
from engine_host.protocol.launch.plans import LaunchPlan, LaunchRequest, StartRequest
from tests.plan_samples import engine_of, plain_plan
from tests.unit.asynchronous import run
from tests.unit.engines.rig import rig

TEXT = "a file"
NEEDED = ConsentNeeded(
    digest=sha256(TEXT),
    demands=(Demand(file="mine.yaml", key="k", what="--tools all", does="Runs shell commands."),),
    contents=(sha256(TEXT),),
)


def plan() -> LaunchPlan:
    return plain_plan(preset="mine", consent=NEEDED)


@pytest.fixture
def consents(tmp_path: Path) -> Any:
    store = Store(tmp_path / "store.sqlite")
    yield PresetConsents(store)
    store.close()


def operations(consents: PresetConsents, started: list[LaunchPlan]) -> EngineOperations:
    async def fresh(_plan: str) -> LaunchPlan:
        return plan()

    def start(given: LaunchPlan) -> Engine:
        started.append(given)
        return engine_of(given)

    manager = SimpleNamespace(start=start, alive=lambda: ())
    events = EventLog()
    return EngineOperations(
        cast(EngineManager, manager),
        cast(PlanOperations, SimpleNamespace(fresh=fresh)),
        lambda: None,
        events,
        consents,
        cast(LastRan, None),
    )


def test_a_start_needs_the_consent_to_these_contents(consents: PresetConsents) -> None:
    started: list[LaunchPlan] = []
    service = operations(consents, started)
    for given in (None, sha256("another file"), ""):
        with pytest.raises(HostError) as caught:
            run(service.start(StartRequest(plan="plan-1", consent=given)))
        assert caught.value.reason is Reason.CONSENT_NEEDED
        assert caught.value.problem.evidence["demands"][0]["what"] == "--tools all"
    assert started == []
    run(service.start(StartRequest(plan="plan-1", consent=NEEDED.digest)))
    run(service.start(StartRequest(plan="plan-1")))
    assert [one.consent for one in started] == [None, None], "it is remembered"


def test_no_other_way_to_a_start_goes_round_it(home: Path) -> None:
    async def test() -> None:
        async with rig() as built:
            with pytest.raises(HostError) as caught:
                built.manager.start(plan())
            assert caught.value.reason is Reason.CONSENT_NEEDED
            assert built.manager.all() == []

    run(test())


@pytest.mark.parametrize("adopted", [False, True])
def test_an_engine_that_is_not_started_again_is_told_with_no_made_up_cause(
    consents: PresetConsents, adopted: bool
) -> None:
    refusal = Problem(
        reason=Reason.GGUF_TRUNCATED, message="m.gguf is cut off.", fix=Fix(text="Download it again.")
    )
    never = unplanned(LaunchRequest(model="m"), "sndr run m")
    engines = {
        "refused": engine_of(never).model_copy(update={"problem": refusal}),
        "old": engine_of(plain_plan()).model_copy(update={"adopted": adopted}),
    }

    def request(_plan: str) -> LaunchRequest:
        raise HostError(Reason.NOT_FOUND, "There is no such plan.")

    service = EngineOperations(
        cast(EngineManager, SimpleNamespace(get=engines.__getitem__, alive=lambda: ())),
        cast(PlanOperations, SimpleNamespace(request=request)),
        lambda: None,
        EventLog(),
        consents,
        cast(LastRan, None),
    )
    with pytest.raises(HostError, match=r"never started.*m\.gguf is cut off\.") as caught:
        run(service.plan_again("refused"))
    assert caught.value.reason is Reason.ENGINE_UNUSABLE
    assert caught.value.problem.cause == "", "no host was started anew"
    with pytest.raises(HostError, match="not known any more") as caught:
        run(service.plan_again("old"))
    assert bool(caught.value.problem.cause) is adopted
