"""An install on another machine: its plan as a diff first, then a job; a FAKE host tells of both."""

from typing import Any

import pytest

from engine_host.protocol.base import Severity
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.launch.plans import Finding
from engine_host.protocol.remote.hosts import RemoteHost, RemoteHostState
from engine_host.protocol.remote.install import PlannedChange, RemoteChange, RemoteInstallPlan
from sndr_gui.views.hosts.installing import InstallDialog
from sndr_gui.views.hosts.page import HostsView
from sndr_gui.views.hosts.sections.engine_host import EngineHostSection
from tests.views.conftest import Stage

MISSING = Problem(
    reason=Reason.HOST_UNREACHABLE,
    message="No engine host runs on gpu.",
    fix=Fix(text="Install it.", command="sndr host install gpu"),
)
PLAN = RemoteInstallPlan(
    host="gpu",
    release="0.2.0",
    changes=(
        PlannedChange(kind=RemoteChange.ADD, what="~/.local/share/sndr/host", size=1 << 20),
        PlannedChange(kind=RemoteChange.RUN, what="systemctl --user start sndr"),
    ),
)


def remote(**more: Any) -> RemoteHost:
    known = {"name": "gpu", "destination": "gpu", "mode": "engine_host", "state": RemoteHostState.CONNECTED}
    return RemoteHost(**{**known, **more})


async def card(stage: Stage, shown: RemoteHost) -> Any:
    stage.host.set_remote(shown)
    stage.window.go("hosts")
    page = stage.window.page
    assert isinstance(page, HostsView)
    await stage.until(lambda: "gpu" in page.cards)
    return page.cards["gpu"]


def dialog_of(stage: Stage) -> InstallDialog:
    return next(one for one in stage.window.findChildren(InstallDialog) if one.isVisible())


def of_engine_host(stage: Stage, shown: Any) -> dict[str, Any]:
    """Open the host, and return the buttons of its engine host."""
    shown.buttons.made["open"].click()
    page = stage.window.page
    assert isinstance(page, HostsView)
    assert page.detail is not None
    page.detail.show_section("Engine host")
    section = page.detail.shown
    assert isinstance(section, EngineHostSection)
    return dict(section.buttons.made)


async def test_a_host_without_ours_is_offered_the_install_with_its_plan_first(stage: Stage) -> None:
    stage.host.install_plan = PLAN
    shown = await card(stage, remote(engine_host_problem=MISSING))
    await stage.until(lambda: shown.buttons.made["install"].isVisible())
    assert shown._state.text() == "no engine host"
    assert shown.buttons.made["install"].toolTip().endswith("sndr host install gpu")
    shown.buttons.made["install"].click()
    dialog = dialog_of(stage)
    assert not dialog.start.isEnabled(), "nothing is started before its plan was seen"
    await stage.until(lambda: dialog.start.isEnabled())
    assert dialog.diff.toPlainText() == ("+ ~/.local/share/sndr/host  (1 MiB)\n$ systemctl --user start sndr")
    assert not stage.host.sent("POST", "/v1/hosts/gpu/install")
    dialog.offline.setChecked(True)
    await stage.until(lambda: dialog.start.isEnabled())
    assert stage.host.sent("POST", "/v1/hosts/gpu/install/plan")[-1]["offline"] is True
    assert dialog.command.label.text() == "sndr host install gpu --offline"
    dialog.start.click()
    await stage.until(lambda: stage.host.sent("POST", "/v1/hosts/gpu/install"))
    await stage.until(lambda: shown._job.isVisible())
    assert not shown.buttons.made["install"].isEnabled()


async def test_a_plan_that_cannot_work_is_not_started(stage: Stage) -> None:
    full = Finding(id="disk", severity=Severity.ERROR, message="The disk there is full.")
    stage.host.install_plan = PLAN.model_copy(update={"findings": (full,)})
    shown = await card(stage, remote(engine_host_problem=MISSING))
    await stage.until(lambda: shown.buttons.made["install"].isVisible())
    shown.buttons.made["install"].click()
    dialog = dialog_of(stage)
    await stage.until(lambda: dialog.findings.isVisible())
    assert not dialog.start.isEnabled()
    dialog.reject()


async def test_an_older_host_is_offered_the_update(stage: Stage) -> None:
    stage.host.install_plan = PLAN
    older = {"control_socket": "/nowhere", "control_token": "/nowhere", "version": "sndr 0.0.1"}
    shown = await card(stage, remote(**older))
    await stage.until(lambda: shown.buttons.made["update"].isVisible())
    assert not shown.buttons.made["install"].isVisible()
    shown.buttons.made["update"].click()
    dialog = dialog_of(stage)
    await stage.until(lambda: dialog.start.isEnabled())
    dialog.start.click()
    await stage.until(lambda: stage.host.sent("POST", "/v1/hosts/gpu/update"))


@pytest.mark.parametrize(
    ("reason", "action", "word"),
    [
        (Reason.HOST_UNREACHABLE, "start", "host does not answer"),
        (Reason.PROTOCOL_MISMATCH, "update", "other version"),
    ],
)
async def test_a_host_that_an_update_mends_is_offered_that_and_its_removal(
    stage: Stage, reason: Reason, action: str, word: str
) -> None:
    stage.host.install_plan = PLAN
    fix = Fix(text="Start it, or update it.", command="sndr host update gpu")
    shown = await card(
        stage, remote(engine_host_problem=Problem(reason=reason, message="It does not answer.", fix=fix))
    )
    await stage.until(lambda: shown.buttons.made[action].isVisible())
    offered = {name for name in ("install", "start", "update") if shown.buttons.made[name].isVisible()}
    assert (offered, shown._state.text()) == ({action}, word)
    shown.buttons.made[action].click()
    dialog = dialog_of(stage)
    await stage.until(lambda: dialog.start.isEnabled())
    assert dialog.command.label.text() == "sndr host update gpu"
    dialog.start.click()
    await stage.until(lambda: stage.host.sent("POST", "/v1/hosts/gpu/update"))
    made = of_engine_host(stage, shown)
    await stage.until(lambda: made["uninstall"].isVisible() and made["back"].isVisible())


async def test_a_removal_shows_what_goes_first(stage: Stage) -> None:
    gone = PlannedChange(kind=RemoteChange.REMOVE, what="~/.local/share/sndr\x1b[2J")
    stage.host.install_plan = RemoteInstallPlan(host="gpu", changes=(gone,))
    shown = await card(stage, remote(control_socket="/nowhere", control_token="/nowhere"))
    made = of_engine_host(stage, shown)
    await stage.until(lambda: made["uninstall"].isVisible())
    made["uninstall"].click()
    dialog = dialog_of(stage)
    await stage.until(lambda: dialog.start.isEnabled())
    assert "\x1b" not in dialog.diff.toPlainText()
    assert dialog.diff.toPlainText().startswith("- ~/.local/share/sndr")
    dialog.start.click()
    await stage.until(lambda: stage.host.sent("POST", "/v1/hosts/gpu/uninstall"))


async def test_going_back_shows_its_plan_first(stage: Stage) -> None:
    stage.host.install_plan = PLAN
    made = of_engine_host(
        stage, await card(stage, remote(control_socket="/nowhere", control_token="/nowhere"))
    )
    await stage.until(lambda: made["back"].isVisible())
    made["back"].click()
    dialog = dialog_of(stage)
    await stage.until(lambda: dialog.start.isEnabled())
    assert dialog.command.label.text() == "sndr host update gpu --back"
    assert not dialog.offline.isVisible()
    dialog.start.click()
    await stage.until(lambda: stage.host.sent("POST", "/v1/hosts/gpu/update/back"))
