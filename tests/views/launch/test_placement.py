"""Launch beside engines that run: the choice of the place, the words on room, and the clicks that help."""

import time
from typing import Any

from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit

from engine_host.core.findings.table import finding
from engine_host.protocol.engines import EngineState
from engine_host.protocol.host import Gpu
from engine_host.protocol.launch.plans import EngineRef, LaunchPlan
from sndr_gui.views.launch.page import LaunchView
from tests.views.conftest import Stage
from tests.views.launch.opened import FIT, PLANS, asked
from tests.views.launch.test_plans import planned
from tests.views.samples import fit as fit_samples
from tests.views.samples import host as samples

GIB = 2**30
FIRST = EngineRef(id="engine-1", name="first")


def plan(*found: Any, **changes: Any) -> LaunchPlan:
    return samples.plan(id=f"plan-{time.monotonic_ns()}", findings=tuple(found), **changes)


async def beside_one(stage: Stage, answer: LaunchPlan) -> LaunchView:
    """Launch with a plan, while one engine runs."""
    stage.host.plan = answer
    stage.host.set_engine(samples.engine(EngineState.READY, name="first"))
    await stage.until(lambda: stage.state.running)
    view = await planned(stage) if answer.startable else await blocked(stage)
    await stage.until(lambda: view.model.plan is not None and not view.model.planning)
    return view


async def blocked(stage: Stage) -> LaunchView:
    """Launch with a model whose plan cannot be started."""
    stage.window.go("launch")
    view = stage.window.page
    assert isinstance(view, LaunchView)
    view.model.select("sndr-demo")
    return view


async def test_with_no_engine_there_is_no_place_to_choose(stage: Stage) -> None:
    view = await planned(stage)
    assert not view.placement.isVisible()
    assert asked(stage, PLANS)["instead_of"] is None


async def test_a_start_goes_beside_what_runs_and_says_how_much_is_left(stage: Stage) -> None:
    stage.host.fit = lambda request: fit_samples.report(request, beside=(FIRST,))
    view = await beside_one(stage, plan(beside=(FIRST,)))
    await stage.until(lambda: "left (estimated)" in view.placement.sentence.text())
    assert view.placement.sentence.text().startswith("Fits beside first, ")
    assert view.placement.box.currentText() == "Automatic (runs alongside)"
    labels = [view.placement.box.itemText(place) for place in range(view.placement.box.count())]
    assert labels[1:] == ["Beside what runs", "Instead of first"], "all is no more than the one"
    assert view.start.note.text() == "Runs beside first."


async def test_the_place_and_the_name_are_asked_for(stage: Stage) -> None:
    view = await beside_one(stage, plan(beside=(FIRST,)))
    stage.host.plan = plan(instead_of=(FIRST,), command="sndr run sndr-demo --instead-of first")
    view.placement.box.setCurrentIndex(2)
    await stage.until(lambda: asked(stage, PLANS)["instead_of"] == ["first"])
    await stage.until(lambda: view.placement.sentence.text().startswith("Ends first first"))
    assert view.model.equivalent_command == "sndr run sndr-demo --instead-of first"
    await stage.until(lambda: asked(stage, FIT).get("instead_of") == ["first"])
    QTest.keyClicks(view.placement.name, "mine")
    await stage.until(lambda: asked(stage, PLANS)["name"] == "mine")


async def test_no_room_says_what_is_missing_and_what_helps(stage: Stage) -> None:
    lacking = finding(
        "no_room_beside",
        missing=round(1.4 * GIB),
        device="main memory",
        beside=["first"],
        instead_of=["first"],
    )
    view = await beside_one(stage, plan(lacking, beside=(FIRST,)))
    await stage.until(lambda: view.placement.remedies)
    assert view.placement.sentence.text() == (
        "Misses 1.4 GiB in main memory beside first (estimated); instead of first it fits."
    )
    assert not view.start.start.isEnabled()
    stage.host.plan = plan(instead_of=(FIRST,))
    view.placement.remedies[0].click()
    await stage.until(lambda: asked(stage, PLANS)["instead_of"] == ["first"])
    await stage.until(view.start.start.isEnabled)
    assert not view.placement.remedies
    assert view.placement.box.currentText() == "Instead of first"


async def test_a_taken_name_offers_a_free_one(stage: Stage) -> None:
    taken = finding("name_taken", name="first", engine="engine-1", free="first-2")
    view = await beside_one(stage, plan(taken, beside=(FIRST,)))
    await stage.until(lambda: view.placement.remedies)
    assert [made.text() for made in view.placement.remedies] == ["Start as first-2", "Instead of first"]
    stage.host.plan = plan(beside=(FIRST,))
    view.placement.remedies[0].click()
    await stage.until(lambda: asked(stage, PLANS)["name"] == "first-2")
    assert view.placement.name.text() == "first-2"


async def test_an_end_for_the_name_says_so_and_one_click_takes_a_free_name(stage: Stage) -> None:
    name = samples.plan().name
    same = EngineRef(id="engine-1", name=name)
    view = await beside_one(stage, plan(instead_of=(same,)))
    said = f"Ends {name} first: it runs under the same name. Another name runs beside it."
    await stage.until(lambda: view.placement.sentence.text() == said)
    assert view.start.note.text() == said, "beside the button"
    assert view.start.remedy.text() == f"Start as {name}-2"
    stage.host.plan = plan(beside=(same,), name=f"{name}-2")
    view.start.remedy.click()
    await stage.until(lambda: asked(stage, PLANS)["name"] == f"{name}-2")
    await stage.until(lambda: view.start.note.text() == f"Runs beside {name}.")
    assert not view.start.remedy.isVisible()


async def test_an_engine_that_ends_is_no_place_any_more(stage: Stage) -> None:
    view = await beside_one(stage, plan(beside=(FIRST,)))
    view.placement.box.setCurrentIndex(2)
    await stage.until(lambda: asked(stage, PLANS)["instead_of"] == ["first"])
    stage.host.plan = plan()
    stage.host.set_engine(samples.engine(EngineState.UNLOADED, name="first"))
    await stage.until(lambda: not view.placement.isVisible())
    await stage.until(lambda: asked(stage, PLANS)["instead_of"] is None)


async def test_another_start_waits_for_its_turn_and_the_same_is_not_started_twice(stage: Stage) -> None:
    view = await beside_one(stage, plan(beside=(FIRST,)))
    starting = samples.engine(EngineState.STARTING, id="engine-2", name="second", created_at=time.time())
    stage.host.set_engine(starting)
    await stage.until(lambda: len(stage.state.live) == 2)
    stage.state.choose(starting)
    await stage.until(lambda: "Starting second" in view.start.note.text())
    await stage.until(view.start.start.isEnabled)
    stage.host.plan = plan(name="second", instead_of=(EngineRef(id="engine-2", name="second"),))
    view.model.set_value("context", 4096)
    await stage.until(lambda: view.model.plan is not None and view.model.plan.name == "second")
    assert not view.start.start.isEnabled()


async def test_names_and_evidence_of_strangers_are_text(stage: Stage) -> None:
    name = "<b>x</b>\u202e" * 40
    lacking = finding(
        "no_room_beside", missing=GIB, device="<i>", beside=[name], instead_of=[name]
    ).model_copy(update={"evidence": {"missing": "lots", "instead_of": 7}})
    view = await beside_one(stage, plan(lacking, beside=(EngineRef(id="e", name=name),)))
    await stage.until(lambda: view.placement.sentence.text())
    assert not view.placement.remedies
    inside = view.panel.widget()
    assert inside is not None
    assert inside.minimumSizeHint().width() < 400


async def test_gpus_are_chosen_by_their_ids_or_left_to_the_host(stage: Stage) -> None:
    cards = tuple(
        Gpu(index=n, uuid=f"GPU-{n}", name="NVIDIA RTX 3090", memory_total=24 * GIB, memory_used=n * GIB)
        for n in range(2)
    )
    stage.host.host = samples.host(gpus=cards, gpu_absence=None)
    stage.state.host = stage.host.host
    stage.host.plan = plan(gpus=("GPU-0",))
    view = await planned(stage)
    await stage.until(lambda: view.placement.gpus)
    assert [box.text() for box in view.placement.gpus.values()] == [
        "0: RTX 3090, 24 GiB free",
        "1: RTX 3090, 23 GiB free",
    ]
    assert view.placement._gpu_note.text() == "automatic: GPU 0"
    assert not view.placement.box.isVisible(), "nothing runs to be beside of"
    stage.host.plan = plan(gpus=("GPU-1",))
    view.placement.gpus["GPU-1"].click()
    await stage.until(lambda: asked(stage, PLANS)["gpus"] == ["GPU-1"])
    await stage.until(lambda: asked(stage, FIT).get("use_gpus") == ["GPU-1"])
    assert view.placement._gpu_note.text() == "as chosen"
    view.placement.gpus["GPU-1"].click()
    await stage.until(lambda: asked(stage, PLANS)["gpus"] == [])


async def test_variables_of_a_start_are_typed_and_checked(stage: Stage) -> None:
    view = await planned(stage)
    view.form.more.click()
    edit = view.form.inputs["variables"]
    assert isinstance(edit, QLineEdit)
    await stage.until(edit.isVisible)
    QTest.keyClicks(edit, "LD_LIBRARY_PATH")
    assert "a variable is NAME=VALUE" in view.model.form_error
    assert not view.start.start.isEnabled()
    QTest.keyClicks(edit, "='/opt/a b' OMP_NUM_THREADS=2")
    assert not view.model.form_error
    wanted = ["LD_LIBRARY_PATH=/opt/a b", "OMP_NUM_THREADS=2"]
    await stage.until(lambda: asked(stage, PLANS)["overrides"]["variables"] == wanted)
