"""The page of routes: empty, its states, making, moving, taking back and removing a route."""

import asyncio
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from engine_host.protocol.endpoint.routes import (
    CutOver,
    NextProvider,
    RouteCheck,
    RouteStatus,
    RouteTargets,
    TargetState,
    TargetStatus,
)
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.jobs import JobKind, JobState
from sndr_gui.host.notices import Notice
from sndr_gui.models.routes.command import command_for
from sndr_gui.models.routes.form import RouteForm
from sndr_gui.views.routes.dialog import RouteDialog
from sndr_gui.views.routes.page import RoutesView
from sndr_gui.views.widgets.copying import CopyField
from tests.views.conftest import Stage
from tests.views.samples import host as samples
from tests.views.samples import routes as route_samples

TO_A, TO_B = RouteTargets(engines=("a",)), RouteTargets(engines=("b",))
OUT = RouteTargets(provider=route_samples.PROVIDER, allow_remote=True)
OTHER = route_samples.PROVIDER.model_copy(update={"url": "https://other/v1"})
ELSEWHERE = OUT.model_copy(update={"provider": OTHER})
LOCAL = route_samples.PROVIDER.model_copy(update={"url": "http://127.0.0.1:9/v1", "key_variable": None})
THREE = OUT.model_copy(
    update={"further": (NextProvider(provider=OTHER, allow_remote=True), NextProvider(provider=LOCAL))}
)


NEXT_OTHER = (
    "--next --provider https://other/v1 --model large --context 131072 --key-env A_KEY --allow-remote"
)
NEXT_LOCAL = "--next --provider http://127.0.0.1:9/v1 --model large --context 131072"


def routes(stage: Stage) -> RoutesView:
    stage.window.go("routes")
    page = stage.window.page
    assert isinstance(page, RoutesView)
    return page


def failed(status: RouteStatus) -> RouteStatus:
    """The same with a provider whose last request failed."""
    seen = {"answered_at": 1.0, "failed_at": 2.0, "failure": "It takes no connection."}
    target = status.targets[0].model_copy(update={"state": TargetState.FAILED} | seen)
    return status.model_copy(update={"answers": False, "targets": (target,)})


def dialog(page: RoutesView) -> RouteDialog:
    assert page.dialog is not None
    return page.dialog


async def test_an_empty_page_teaches(stage: Stage) -> None:
    page = routes(stage)
    await stage.until(lambda: page.model.page)
    assert page._stack.currentIndex() == 1
    assert "model ID of your own" in page._empty.sentence.text()
    command = page._empty.findChild(CopyField)
    assert command is not None
    label = command.label
    assert label.width() >= label.fontMetrics().horizontalAdvance(label.text()), "it is not cut"


async def test_a_route_is_made(stage: Stage) -> None:
    page = routes(stage)
    await stage.until(lambda: page.model.page)
    QTest.mouseClick(page.new, Qt.MouseButton.LeftButton)
    asked = dialog(page)
    assert not asked.save.isEnabled()
    asked.name.setText("my/coder")
    asked.engines.setText("a, b")
    assert "my-coder" in asked.wrong.text()
    assert not asked.save.isEnabled()
    asked.name.setText("coder")
    assert asked.command.label.text() == "sndr routes set coder a b"
    asked.save.click()
    await stage.until(lambda: "coder" in page.cards)
    sent = stage.host.sent("PUT", "/v1/routes/coder")
    assert sent[0]["engines"] == ["a", "b"]
    await stage.until(lambda: page.dialog is None)
    assert page._stack.currentIndex() == 0


async def test_a_refusal_is_told_in_the_dialog(stage: Stage) -> None:
    page = routes(stage)
    await stage.until(lambda: page.model.page)
    stage.host.refuse["/v1/routes/coder"] = Problem(reason=Reason.SETTING_INVALID, message="No such address.")
    page.add()
    asked = dialog(page)
    asked.name.setText("coder")
    asked.engines.setText("a")
    asked.save.click()
    await stage.until(lambda: not asked.problem.isHidden())
    assert asked.problem._what.text() == "No such address."
    asked.reject()
    await stage.until(lambda: page.dialog is None)


async def test_a_name_that_nobody_knows_is_saved_only_when_that_is_said(stage: Stage) -> None:
    page = routes(stage)
    await stage.until(lambda: page.model.page)
    stage.host.refuse["/v1/routes/coder"] = Problem(
        reason=Reason.NOT_FOUND, message="Nobody is called so.", evidence={"unknown": "nosuch", "near": []}
    )
    page.add()
    asked = dialog(page)
    asked.name.setText("coder")
    asked.engines.setText("nosuch")
    asked.save.click()
    await stage.until(lambda: asked.save.text() == "Save anyway")
    assert asked.command.label.text() == "sndr routes set coder nosuch --anyway"
    asked.engines.setText("nosuch2")
    assert asked.save.text() == "Save"
    asked.save.click()
    await stage.until(lambda: asked.save.text() == "Save anyway")
    stage.host.refuse.clear()
    asked.save.click()
    await stage.until(lambda: "coder" in page.cards)
    assert [body.get("anyway") for body in stage.host.sent("PUT", "/v1/routes/coder")] == [False, False, True]
    await stage.until(lambda: page.dialog is None)


async def test_a_cut_over_of_an_earlier_route_is_not_shown(stage: Stage) -> None:
    stage.host.routes = {"coder": route_samples.route("coder", TO_A)}
    page = routes(stage)
    await stage.until(lambda: page.cards)
    model, route = page.model, stage.host.routes["coder"].route
    ended = samples.job(JobKind.ROUTE_CUTOVER, JobState.FAILED, touches="route coder")
    stage.state.set_job(ended.model_copy(update={"ended_at": route.changed_at + 1}))
    assert model.job(route) is not None
    assert model.job(route.model_copy(update={"changed_at": route.changed_at + 2})) is None


async def test_the_states_of_targets(stage: Stage) -> None:
    stage.host.routes = {
        "gone": route_samples.route("gone", TO_B, TargetState.UNKNOWN),
        "here": route_samples.route("here", TO_A),
        "out": route_samples.route("out", OUT.model_copy(update={"allow_remote": False})),
        "open": route_samples.route("open", OUT),
        "failed": failed(route_samples.route("failed", OUT)),
    }
    page = routes(stage)
    await stage.until(lambda: len(page.cards) == 5)
    assert page.cards["here"]._state.text() == "answers"
    assert page.cards["gone"]._state.text() == "does not answer"
    assert page.cards["open"]._state.text() == "not asked yet"
    assert page.cards["failed"]._state.text() == "does not answer"
    shown = "\n".join(label.text() for label in page.cards["failed"].findChildren(QLabel))
    assert "answered last at " in shown
    assert ": It takes no connection." in shown
    assert not page.cards["here"].back.isEnabled()
    page.edit(stage.host.routes["out"])
    asked = dialog(page)
    assert asked.url.text() == "https://api.example.com/v1"
    asked.allow.setChecked(True)
    assert asked.command.label.text() == "sndr routes set out --allow-remote"
    asked.reject()
    await stage.until(lambda: page.dialog is None)


async def test_key_and_consent_go_to_no_other_address(stage: Stage) -> None:
    stage.host.routes = {"out": route_samples.route("out", OUT)}
    page = routes(stage)
    await stage.until(lambda: page.cards)
    page.edit(stage.host.routes["out"])
    asked = dialog(page)
    asked.url.setText("https://api.example.com/v2")
    assert asked.allow.isChecked(), "it is the same place"
    assert asked.key_variable.text() == "A_KEY"
    asked.url.setText("https://other/v1")
    assert not asked.allow.isChecked()
    assert asked.key_variable.text() == ""
    assert not asked.elsewhere.isHidden()
    asked.allow.setChecked(True)
    asked.url.setText("https://other/v2")
    assert asked.allow.isChecked(), "it was given again"
    asked.reject()
    await stage.until(lambda: page.dialog is None)


def rows(asked: RouteDialog) -> list[str]:
    shown = asked.providers.list
    return [shown.item(row).text() for row in range(shown.count())]


async def test_each_provider_of_a_route_is_edited_in_its_place(stage: Stage) -> None:
    status = route_samples.route("out", THREE)
    answered = status.targets[0].model_copy(update={"state": TargetState.ANSWERED})
    failed_one = TargetStatus(name="large at other", provider=True, state=TargetState.FAILED)
    third = TargetStatus(name="large at 127.0.0.1:9", provider=True, state=TargetState.NOT_ALLOWED)
    stage.host.routes = {"out": status.model_copy(update={"targets": (answered, failed_one, third)})}
    page = routes(stage)
    await stage.until(lambda: page.cards)
    page.edit(stage.host.routes["out"])
    asked = dialog(page)
    assert rows(asked) == [
        "1. large at api.example.com · answered",
        "2. large at other · failed",
        "3. large at 127.0.0.1:9 · may not be asked",
    ]
    listed = asked.providers.list
    listed.setFocus()
    QTest.keyClick(listed, Qt.Key.Key_Down)
    QTest.keyClick(listed, Qt.Key.Key_Down)
    assert asked.url.text() == "http://127.0.0.1:9/v1"
    assert not asked.allow.isChecked()
    asked.allow.setChecked(True)
    assert rows(asked)[2].endswith("not asked yet"), "it is seen when it is asked"
    asked.providers.up.click()
    assert [row[:12] for row in rows(asked)] == ["1. large at ", "2. large at ", "3. large at "]
    assert "127.0.0.1:9" in rows(asked)[1]
    assert asked.url.text() == "http://127.0.0.1:9/v1", "the same is edited on"
    listed.setCurrentRow(0)
    assert asked.allow.isChecked(), "each has a permission of its own"
    assert asked.key_variable.text() == "A_KEY"
    asked.providers.remove.click()
    assert asked.url.text() == "http://127.0.0.1:9/v1"
    asked.providers.add.click()
    assert asked.url.text() == ""
    assert not asked.save.isEnabled()
    assert "Provider 3: Give the provider's base URL." in asked.wrong.text()
    asked.url.setText("https://third/v1")
    asked.model_there.setText("m")
    asked.context.setText("4096")
    assert not asked.allow.isChecked(), "nothing is allowed by itself"
    assert rows(asked)[2] == "3. m at third · may not be asked"
    asked.save.click()
    await stage.until(lambda: stage.host.sent("PUT", "/v1/routes/out"))
    (sent,) = stage.host.sent("PUT", "/v1/routes/out")
    told = [(sent["provider"]["url"], sent["allow_remote"])]
    told += [(one["provider"]["url"], one["allow_remote"]) for one in sent["further"]]
    assert told == [("http://127.0.0.1:9/v1", True), ("https://other/v1", True), ("https://third/v1", False)]
    await stage.until(lambda: page.dialog is None)


async def test_another_address_of_one_provider_leaves_the_others_alone(stage: Stage) -> None:
    stage.host.routes = {"out": route_samples.route("out", THREE)}
    page = routes(stage)
    await stage.until(lambda: page.cards)
    page.edit(stage.host.routes["out"])
    asked = dialog(page)
    asked.providers.list.setCurrentRow(1)
    asked.url.setText("https://elsewhere/v1")
    assert (asked.allow.isChecked(), asked.key_variable.text()) == (False, "")
    assert not asked.elsewhere.isHidden()
    asked.providers.list.setCurrentRow(0)
    assert (asked.allow.isChecked(), asked.key_variable.text()) == (True, "A_KEY")
    assert asked.elsewhere.isHidden()
    asked.reject()
    await stage.until(lambda: page.dialog is None)


async def test_a_route_is_moved_taken_back_and_removed(stage: Stage) -> None:
    stage.host.routes = {"coder": route_samples.route("coder", TO_A, before=TO_B)}
    page = routes(stage)
    await stage.until(lambda: page.cards)
    card = page.cards["coder"]
    card.move_button.click()
    asked = dialog(page)
    assert not asked.save.isEnabled(), "it leads there already"
    asked.engines.setText("b")
    assert asked.command.label.text() == "sndr routes cutover coder b"
    asked.save.click()
    await stage.until(lambda: stage.host.sent("POST", "/v1/routes/coder/cutover"))
    await stage.until(lambda: page.dialog is None)
    await stage.until(lambda: not card.move_button.isEnabled())
    assert not card._job.isHidden()

    check = RouteCheck(target="b", name="chat", passed=True, detail="16 tokens written", seconds=0.1)
    moved = CutOver(route=stage.host.routes["coder"].route, checks=(check,)).model_dump(mode="json")
    done = samples.job(JobKind.ROUTE_CUTOVER, JobState.DONE, touches="route coder", result=moved)
    stage.state.set_job(done)
    await stage.until(lambda: card._evidence.text() == "b, chat: 16 tokens written")
    card.back.click()
    await stage.until(lambda: stage.host.sent("POST", "/v1/routes/coder/back"))
    await stage.until(card.remove.isEnabled)
    notices: list[Notice] = []
    stage.session.notices.posted.connect(notices.append)
    led = stage.host.routes["coder"].route.targets
    card.remove.click()
    await stage.until(lambda: not page.cards)
    assert page._stack.currentIndex() == 1
    assert [(notice.text, notice.action_text) for notice in notices] == [("coder is removed.", "Undo")]
    undo = notices[0].action
    assert undo is not None
    undo()
    await stage.until(lambda: page.cards)
    assert stage.host.routes["coder"].route.targets == led


async def test_without_a_host_nothing_can_be_changed(stage: Stage) -> None:
    stage.host.routes = {"coder": route_samples.route("coder", TO_A)}
    page = routes(stage)
    await stage.until(lambda: page.cards)
    await stage.host.stop()
    await stage.until(lambda: not page.new.isEnabled())
    assert not page.cards["coder"].remove.isEnabled()
    await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"route_id": ""}, "Give the route an ID"),
        ({"route_id": "a:b"}, "Call it a-b"),
        ({"engines": ""}, "Name an engine"),
        ({"engines": "a, a"}, "named twice"),
        ({"engines": "a\u2028b"}, "one line of plain text"),
        ({"asks_provider": True}, "base URL"),
        ({"asks_provider": True, "url": "https://x/v1", "model": "m"}, "context"),
        ({"asks_provider": True, "url": "https://x/v1", "model": "m", "context": "much"}, "whole number"),
        ({"asks_provider": True, "url": "https://x/v1", "model": "m", "context": "1"}, "The context"),
        (
            {"asks_provider": True, "url": "u", "model": "m", "context": "512", "key_variable": "A B"},
            "The key's variable",
        ),
    ],
)
def test_what_is_missing_is_said(changes: dict[str, object], told: str) -> None:
    form = RouteForm("coder", "a")
    for name, value in changes.items():
        setattr(form if hasattr(form, name) else form.providers[0], name, value)
    targets, wrong = form.read()
    assert targets is None
    assert told in wrong


def test_a_form_gives_back_what_it_was_made_of() -> None:
    both = RouteTargets(engines=("a",), provider=route_samples.PROVIDER, allow_remote=True, fallback=True)
    for targets in (TO_A, OUT, both, THREE):
        assert RouteForm.of("r", targets).read() == (targets, "")


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (None, TO_A, "sndr routes set r a"),
        (TO_A, OUT, "sndr routes set r --no-engines --provider https://api.example.com/v1 --model large "
                    "--context 131072 --key-env A_KEY --allow-remote"),
        (OUT, TO_A, "sndr routes set r a --no-provider"),
        (OUT, ELSEWHERE, "sndr routes set r --provider https://other/v1 --model large --context 131072 "
                         "--key-env A_KEY --allow-remote"),
        (OUT, THREE, f"sndr routes set r {NEXT_OTHER} && sndr routes set r {NEXT_LOCAL}"),
        (THREE, OUT, "sndr routes set r --no-next"),
        (THREE, TO_A, "sndr routes set r a --no-provider"),
        (THREE, THREE.model_copy(update={"further": THREE.further[::-1]}),
         f"sndr routes set r --no-next && sndr routes set r {NEXT_LOCAL} && sndr routes set r {NEXT_OTHER}"),
        (THREE, THREE.model_copy(update={"allow_remote": False}), "sndr routes set r --no-allow-remote"),
    ],
)  # fmt: skip
def test_the_command_does_the_same(
    before: RouteTargets | None, after: RouteTargets, words: str, tmp_path: Path
) -> None:
    assert command_for("set", "r", after, before) == words
