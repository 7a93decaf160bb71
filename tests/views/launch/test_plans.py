"""Launch shows and starts the plan of what is chosen, set and true on the host now, never an earlier one."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from engine_host.client.asynchronous import AsyncControlClient
from engine_host.client.exchange import Sent
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.events import EventBase, PatchesChangedEvent, SettingsChangedEvent
from sndr_gui.models.launch.page import ListKind
from sndr_gui.views.launch.page import LaunchView
from tests.views.conftest import Stage
from tests.views.samples import host as samples


async def planned(stage: Stage) -> LaunchView:
    """Launch with a plan that can be started."""
    stage.window.go("launch")
    page = stage.window.page
    assert isinstance(page, LaunchView)
    page.model.show_list(ListKind.MODELS)
    await stage.until(page.start.start.isEnabled)
    return page


def starts(stage: Stage) -> list[Any]:
    """The ids of the plans that were sent to be started."""
    return [body["plan"] for body in stage.host.sent("POST", "/v1/engines")]


async def shown_again(stage: Stage, page: LaunchView) -> None:
    """Come back to Launch, and start what it shows once it can be started."""
    stage.window.go("launch")
    assert not page.start.start.isEnabled(), "the earlier plan is not to be started"
    await stage.until(page.start.start.isEnabled)
    page.start.start.click()
    await stage.until(lambda: starts(stage))
    assert starts(stage) == ["plan-2"]


@pytest.mark.parametrize("event", [SettingsChangedEvent(names=("engine.streams",)), PatchesChangedEvent()])
async def test_what_changed_elsewhere_is_in_the_plan_when_launch_is_back(
    stage: Stage, event: EventBase
) -> None:
    page = await planned(stage)
    stage.window.go("home")
    stage.host.plan = samples.plan(id="plan-2")
    stage.host.publish(event)
    await stage.until(lambda: stage.state.seq == stage.host.seq)
    await shown_again(stage, page)


async def test_a_host_that_came_anew_meanwhile_plans_anew(stage: Stage) -> None:
    page = await planned(stage)
    stage.window.go("home")
    await stage.host.stop()
    await stage.until(lambda: not stage.connection.connected)
    stage.host.run_id, stage.host.plan = "run-2", samples.plan(id="plan-2")
    await stage.host.start()
    stage.connection.retry()
    await stage.until(lambda: stage.connection.connected)
    await shown_again(stage, page)


async def test_a_value_set_right_before_leaving_is_planned_when_launch_is_back(stage: Stage) -> None:
    page = await planned(stage)
    stage.host.plan = samples.plan(id="plan-2")
    page.model.set_value("context", 4096)
    stage.window.go("home")
    await shown_again(stage, page)
    assert stage.host.sent("POST", "/v1/plans")[-1]["overrides"]["context"] == 4096


@pytest.mark.parametrize("reason", [Reason.PLAN_STALE, Reason.NOT_FOUND])
async def test_a_plan_that_is_refused_as_old_is_made_again(stage: Stage, reason: Reason) -> None:
    page = await planned(stage)
    stage.host.refuse["/v1/engines"] = Problem(reason=reason, message="The plan is old.")
    stage.host.plan = samples.plan(id="plan-2")
    page.start.start.click()
    await stage.until(lambda: page.model.plan is not None and page.model.plan.id == "plan-2")
    assert page.model.plan is not None
    del stage.host.refuse["/v1/engines"]
    await stage.until(page.start.start.isEnabled)
    page.start.start.click()
    await stage.until(lambda: len(starts(stage)) == 2)
    assert starts(stage) == ["plan-1", "plan-2"], "the new plan is looked at before it is started"


@pytest.mark.parametrize("way", ["another model", "another value"])
async def test_the_plan_of_an_earlier_choice_is_not_taken(stage: Stage, way: str) -> None:
    page = await planned(stage)
    model, gate = page.model, asyncio.Event()
    taken: list[str] = []

    def note() -> None:
        if model.can_start and model.plan is not None:
            taken.append(model.plan.id)

    stage.host.plan, stage.host.plan_gate = samples.plan(id="earlier"), gate
    asked = len(stage.host.sent("POST", "/v1/plans"))
    model.select("qwen3-8b")
    await stage.until(lambda: len(stage.host.sent("POST", "/v1/plans")) > asked)
    stage.host.plan, stage.host.plan_gate = samples.plan(id="plan-2"), None
    model.plan_changed.connect(note)
    if way == "another model":
        model.select("gemma-4b")
    else:
        model.set_value("context", 4096)
    gate.set()
    await stage.until(lambda: "plan-2" in taken)
    assert set(taken) == {"plan-2"}
    assert page.start.start.isEnabled()


async def test_only_a_plan_that_takes_long_says_so_and_moves_nothing(stage: Stage) -> None:
    page = await planned(stage)
    said: list[tuple[str, str]] = []
    place = page.start.geometry()

    def note() -> None:
        said.append((page.start.note.text(), page.plan._making.text()))

    before = page.start.note.text()
    page.model.plan_changed.connect(note)
    page.model._patience.setInterval(600_000)
    stage.host.plan = samples.plan(id="plan-2")
    page.model.set_value("context", 4096)
    await stage.until(page.start.start.isEnabled)
    assert set(said) == {(before, "")}
    page.model._patience.setInterval(0)
    stage.host.plan_gate = gate = asyncio.Event()
    page.model.set_value("context", 2048)
    await stage.until(lambda: page.start.note.text() == page.plan._making.text() == "Planning…")
    assert page.start.geometry() == place
    assert page.plan.settings.isVisible()
    gate.set()
    await stage.until(page.start.start.isEnabled)
    assert (page.start.note.text(), page.plan._making.text()) == (before, "")


async def test_what_is_no_longer_chosen_is_not_started(stage: Stage) -> None:
    page = await planned(stage)
    stage.state.set_models(samples.models().model_copy(update={"models": ()}))
    assert page.model.subject is None
    assert not page.start.start.isEnabled()


async def test_a_plan_that_took_too_long_says_so_and_is_asked_for_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = await planned(stage)
    gate, send = asyncio.Event(), AsyncControlClient._send

    async def impatient(client: AsyncControlClient, sent: Sent) -> bytes:
        return await send(client, replace(sent, seconds=0.05) if sent.path == "/v1/plans" else sent)

    monkeypatch.setattr(AsyncControlClient, "_send", impatient)
    stage.host.plan_gate = gate
    page.model.set_value("context", 4096)
    await stage.until(lambda: page.model.plan is None and not page.model.planning)
    assert page.start.note.text() == "The engine host did not answer in time.", "beside the button"
    assert page.start.note.text() in page.start.start.toolTip()
    assert page.plan.problem.isVisible()
    assert page.plan.problem._what.text() == "The engine host did not answer in time."
    gate.set()
    monkeypatch.undo()
    stage.host.plan, stage.host.plan_gate = samples.plan(id="plan-2"), None
    stage.window.go("home")
    await shown_again(stage, page)
    assert not page.plan.problem.isVisible()


@pytest.mark.parametrize("ended", ["", "--replace", "--instead-of 'a b' --instead-of --keep"])
async def test_what_is_left_to_requests_keeps_and_ends_nothing(stage: Stage, ended: str) -> None:
    plain = "sndr run sndr-demo --gpu 'a b'"
    stage.host.plan = samples.plan(command=f"{plain} --keep {ended}".strip())
    page = await planned(stage)
    assert page.start.on_demand.toolTip().endswith(f"\n{plain} --on-demand")


async def test_a_plan_is_left_to_requests(stage: Stage) -> None:
    page = await planned(stage)
    assert page.start.on_demand.toolTip().endswith("--on-demand")
    page.start.on_demand.click()
    await stage.until(lambda: bool(stage.host.sent("POST", "/v1/on-demand")))
    (sent,) = stage.host.sent("POST", "/v1/on-demand")
    assert page.model.subject is not None
    assert sent["launch"]["model"] == page.model.subject.asks["model"]
    assert not starts(stage), "nothing is started"
