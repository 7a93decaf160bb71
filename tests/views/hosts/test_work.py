"""Work on another machine from its detail: planned first, then a job; a FAKE host tells of both."""

import time
from typing import Any

import pytest
from PySide6.QtWidgets import QLabel

from engine_host.core.errors import HostError
from engine_host.protocol.base import Severity
from engine_host.protocol.endpoint.connect import EndpointModel
from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import JobKind, JobState
from engine_host.protocol.launch.consents import ConsentNeeded, Demand
from engine_host.protocol.launch.plans import Finding
from engine_host.protocol.remote.install import PlannedChange, RemoteChange
from engine_host.protocol.remote.services import (
    GpuPower,
    ManagerState,
    PowerPage,
    PowerPlan,
    Service,
    ServiceManager,
    ServicePage,
    ServicePlan,
    ServiceState,
)
from engine_host.protocol.remote.staging import Promotion, PromotionPage, PromotionPlan
from engine_host.protocol.remote.transfers import FileStanding, TransferFile
from engine_host.protocol.telemetry import Series, TelemetryPage
from sndr_gui.kit import formats
from sndr_gui.views.hosts.planned import PlannedDialog
from sndr_gui.views.hosts.sections.ending import EndingDialog
from sndr_gui.views.hosts.sections.files import folder_of
from sndr_gui.views.hosts.sections.service_log import ServiceLogDialog
from tests.views.conftest import Stage
from tests.views.hosts.test_detail import opened, words

OURS = Service(
    manager=ServiceManager.SYSTEMD, name="sndr-qwen", ours=True, state=ServiceState.RUNNING, enabled=False
)
OTHERS = Service(manager=ServiceManager.DOCKER, name="db", detail="Up\x1b[2J", state=ServiceState.RUNNING)


def dialog_of(stage: Stage) -> PlannedDialog:
    return next(one for one in stage.window.findChildren(PlannedDialog) if one.isVisible())


def ending_of(stage: Stage) -> EndingDialog:
    return next(one for one in stage.window.findChildren(EndingDialog) if one.isVisible())


async def test_a_model_is_sent_after_its_plan_was_seen(stage: Stage) -> None:
    files = (
        TransferFile(name="qwen.gguf", size=1 << 30, standing=FileStanding.PART, there=1 << 29),
        TransferFile(name="old.gguf", size=1 << 20, standing=FileStanding.SAME),
    )
    stage.host.transfer = stage.host.transfer.model_copy(update={"files": files, "left": 1 << 29})
    detail = await opened(stage, "Files", model_root="/srv/models")
    section: Any = detail.shown
    assert "They lie in /srv/models." in words(detail)
    section.send.click()
    dialog = dialog_of(stage)
    assert not dialog.start.isEnabled()
    dialog.lines["model"].setText("qwen; rm -rf /")
    assert dialog.command.label.text() == "sndr host send gpu 'qwen; rm -rf /'"
    await stage.until(dialog.start.isEnabled)
    assert "+ /srv/models/qwen.gguf  (1 GiB, 512 MiB of it are there)" in dialog.diff.toPlainText()
    assert not stage.host.sent("POST", "/v1/hosts/gpu/send")
    dialog.checks["replace"].setChecked(True)
    assert not dialog.start.isEnabled(), "what was planned was something else"
    await stage.until(dialog.start.isEnabled)
    dialog.start.click()
    await stage.until(lambda: stage.host.sent("POST", "/v1/hosts/gpu/send"))
    (asked,) = stage.host.sent("POST", "/v1/hosts/gpu/send")
    assert (asked["model"], asked["to"], asked["replace"]) == ("qwen; rm -rf /", None, True)
    await stage.until(lambda: detail._job.isVisible())


async def test_a_plan_with_an_error_begins_nothing(stage: Stage) -> None:
    full = Finding(id="x", severity=Severity.ERROR, message="The disk there is full.")
    stage.host.transfer = stage.host.transfer.model_copy(update={"findings": (full,)})
    section: Any = (await opened(stage, "Files")).shown
    section.fetch.click()
    dialog = dialog_of(stage)
    dialog.lines["model"].setText("/srv/models/qwen.gguf")
    await stage.until(dialog.findings.isVisible)
    assert not dialog.start.isEnabled()
    dialog.reject()


async def test_services_of_ours_are_acted_on_and_others_are_only_shown(stage: Stage) -> None:
    stage.host.services = ServicePage(host="gpu", read_at=1.0, managers=(), services=(OURS, OTHERS))
    detail = await opened(stage, "Services")
    section: Any = detail.shown
    await stage.until(lambda: "sndr-qwen" in section.made)
    assert "\x1b" not in words(detail)
    assert list(section.made) == ["sndr-qwen"]
    made = section.made["sndr-qwen"]
    assert made["stop"].accessibleName() == "Stop sndr-qwen"
    assert made["stop"].toolTip().endswith("sndr host unit stop gpu sndr-qwen")
    await stage.until(lambda: made["logs"].isEnabled())
    made["logs"].click()
    await stage.until(lambda: stage.window.findChildren(ServiceLogDialog))
    (log,) = stage.window.findChildren(ServiceLogDialog)
    await stage.until(lambda: bool(log.content.toPlainText()))
    assert log.content.toPlainText().startswith("ready")
    assert "\x1b" not in log.content.toPlainText()
    assert log.command.label.text() == "sndr host logs gpu sndr-qwen --in systemd --follow"
    log.following.click()
    assert log.command.label.text() == "sndr host logs gpu sndr-qwen --in systemd"
    log.accept()
    assert made["enable"].accessibleName() == "Start at boot sndr-qwen"
    path = "/v1/hosts/gpu/services/systemd/sndr-qwen"
    made["restart"].click()
    question = ending_of(stage)
    assert question.windowTitle() == "Restart sndr-qwen on gpu?"
    assert question.stay.isDefault()
    question.stay.click()
    made["stop"].click()
    question = ending_of(stage)
    assert "stays stopped until somebody starts it" in question.accessibleDescription()
    assert not stage.host.sent("POST", f"{path}/act"), "nobody has agreed yet"
    question.end.click()
    await stage.until(lambda: stage.host.sent("POST", f"{path}/act"))
    assert stage.host.sent("POST", f"{path}/act")[0]["action"] == "stop"


async def test_a_service_is_removed_after_its_plan_was_seen(stage: Stage) -> None:
    gone = PlannedChange(kind=RemoteChange.REMOVE, what="~/.config/systemd/user/sndr-qwen.service")
    stage.host.services = ServicePage(host="gpu", read_at=1.0, managers=(), services=(OURS,))
    stage.host.service_plan = ServicePlan(
        host="gpu", manager=ServiceManager.SYSTEMD, name="sndr-qwen", changes=(gone,)
    )
    section: Any = (await opened(stage, "Services")).shown
    await stage.until(lambda: section.made)
    section.made["sndr-qwen"]["remove"].click()
    dialog = dialog_of(stage)
    await stage.until(dialog.start.isEnabled)
    assert dialog.diff.toPlainText() == "- ~/.config/systemd/user/sndr-qwen.service"
    dialog.start.click()
    path = "/v1/hosts/gpu/services/systemd/sndr-qwen/remove"
    await stage.until(lambda: stage.host.sent("POST", path))


async def test_without_a_service_the_section_says_what_one_is_for(stage: Stage) -> None:
    detail = await opened(stage, "Services")
    await stage.until(lambda: "No service of ours is there." in words(detail))
    section: Any = detail.shown
    assert section.install.toolTip().endswith("sndr host unit install gpu PRESET")


async def test_a_service_is_installed_after_its_plan_and_its_demands_were_seen(stage: Stage) -> None:
    demand = Demand(file="x\x1b[2J.yaml", key="settings.a", what="<b>--rm</b>", does="It runs a program.")
    needed = ConsentNeeded(digest="ab12", demands=(demand,))
    stage.host.service_refused = HostError(
        Reason.CONSENT_NEEDED, "It asks for more.", evidence=needed.model_dump(mode="json")
    )
    stage.host.service_plan = ServicePlan(
        host="gpu",
        manager=ServiceManager.DOCKER,
        name="sndr-qwen",
        model="qwen",
        address="http://127.0.0.1:8000",
        changes=(PlannedChange(kind=RemoteChange.RUN, what="docker pull \x1b[31mx@sha256:12"),),
    )
    docker = ManagerState(manager=ServiceManager.DOCKER, usable=True)
    stage.host.services = ServicePage(host="gpu", read_at=1.0, managers=(docker,), services=())
    detail = await opened(stage, "Services")
    section: Any = detail.shown
    await stage.until(lambda: section.model.page is not None)
    section.install.click()
    dialog = dialog_of(stage)
    assert dialog.choices["manager"].currentText() == "docker", "the one that can be used there"
    assert not dialog.start.isEnabled()
    assert not dialog.lines["name"].isVisible()
    dialog.more.click()
    assert dialog.lines["name"].isVisible()
    dialog.lines["preset"].setText("qwen; x")
    dialog.checks["enable"].click()
    await stage.until(dialog.consent.isVisible)
    assert not dialog.start.isEnabled()
    stage.window.grab()
    dialog.consent.click()
    await stage.until(dialog.start.isEnabled)
    shown = dialog.diff.toPlainText()
    assert "sndr-qwen answers as qwen at http://127.0.0.1:8000 there." in shown
    assert "\x1b" not in shown
    assert dialog.command.label.text() == (
        "sndr host container install gpu 'qwen; x' --in docker --no-enable --accept ab12"
    )
    dialog.lines["port"].setText("99999")
    await stage.until(lambda: dialog.wrong.text().startswith("Port: "))
    assert not dialog.start.isEnabled()
    dialog.lines["port"].setText("8001")
    await stage.until(dialog.start.isEnabled)
    dialog.start.click()
    path = "/v1/hosts/gpu/services"
    await stage.until(lambda: stage.host.sent("POST", path))
    asked = stage.host.sent("POST", path)[0]
    assert (asked["launch"]["preset"], asked["port"], asked["consent"]) == ("qwen; x", 8001, "ab12")
    await stage.until(lambda: detail._job.isVisible())
    running = detail.model.hosts.job("gpu")
    assert running is not None
    route = "sndr routes set qwen gpu/qwen"
    result = {"name": "sndr-qwen", "route": route}
    stage.state.set_job(running.model_copy(update={"state": JobState.DONE, "result": result}))
    await stage.until(lambda: section.route.isVisible())
    assert section.route.label.text() == route


async def test_the_vllm_of_starts_there_is_pinned_and_taken_back(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(stage.pages.fleet), "known_session", lambda _self, _name: stage.session)
    stage.host.pin = stage.host.pin.model_copy(update={"now": "0.32.0\x1b[2J"})
    section: Any = (await opened(stage, "Engine host", mode="engine_host")).shown
    card = section.pin
    await stage.until(card.back.isEnabled)
    assert "\x1b" not in "\n".join(label.text() for label in card.findChildren(QLabel))
    card.pin.click()
    dialog = dialog_of(stage)
    dialog.lines["version"].setText("0.33.0")
    await stage.until(dialog.start.isEnabled)
    assert dialog.command.label.text() == "sndr host pin gpu vllm 0.33.0"
    assert dialog.diff.toPlainText() == "@ starts use 0.33.0"
    dialog.start.click()
    await stage.until(lambda: stage.host.sent("POST", "/v1/installations-pin"))
    await stage.until(card.job.isVisible)
    assert not card.back.isEnabled(), "one change at a time"
    running = card._model.job
    stage.state.set_job(running.model_copy(update={"state": JobState.DONE}))
    await stage.until(card.back.isEnabled)
    assert card.back.toolTip().endswith("sndr host pin gpu --back")
    await stage.until(lambda: not stage.window.findChildren(PlannedDialog))
    card.back.click()
    assert dialog_of(stage).command.label.text() == "sndr host pin gpu --back"
    dialog_of(stage).reject()


async def test_a_power_limit_is_set_after_its_plan_was_seen(stage: Stage) -> None:
    gpu = GpuPower(index=0, uuid="GPU-1", name="RTX \x1b[2J", limit=350.0, minimum=100.0, maximum=400.0)
    stage.host.power = PowerPage(host="gpu", read_at=1.0, gpus=(gpu,), permitted=False, why="<b>no</b> sudo")
    change = PlannedChange(kind=RemoteChange.CHANGE, what="power limit of GPU 0", text="-350 W\n+300 W")
    stage.host.power_plan = PowerPlan(host="gpu", gpu=gpu, watts=300, changes=(change,))
    detail = await opened(stage)
    section: Any = detail.shown
    detail.model.read_power()
    await stage.until(section.power.set.isEnabled)
    said = words(detail)
    assert "100 W to 400 W" in said
    assert formats.UNMEASURED in said.splitlines(), "what it draws is not told"
    assert "\x1b" not in said
    section.power.set.click()
    dialog = dialog_of(stage)
    dialog.lines["watts"].setText("300")
    await stage.until(dialog.start.isEnabled)
    assert dialog.command.label.text() == "sndr host power gpu 0 300"
    assert "-350 W" in dialog.diff.toPlainText()
    dialog.lines["watts"].setText("many")
    await stage.until(lambda: dialog.wrong.text().startswith("Watts: "))
    dialog.lines["watts"].setText("")
    assert dialog.command.label.text() == "sndr host power gpu 0 --reset"
    await stage.until(dialog.start.isEnabled)
    dialog.start.click()
    await stage.until(lambda: stage.host.sent("POST", "/v1/hosts/gpu/power"))
    assert stage.host.sent("POST", "/v1/hosts/gpu/power")[0]["watts"] is None


async def test_an_engine_is_promoted_and_rolled_back(stage: Stage) -> None:
    plan = PromotionPlan(
        route="coder",
        checks=("chat",),
        changes=(PlannedChange(kind=RemoteChange.CHANGE, what="coder -> gpu/qwen3"),),
        command="sndr host promote gpu coder qwen3",
    )
    stage.host.promotion_plan = plan
    promoted = Promotion(id="coder", host="gpu", target="gpu/qwen3", at=1.0)
    stage.host.promotions = PromotionPage(seq=1, promotions=(promoted,))
    models = (EndpointModel(id="qwen3", context=4096, chat=True),)
    detail = await opened(stage, "Traffic", models=models)
    section: Any = detail.shown
    await stage.until(lambda: section.promote.isEnabled())
    section.promote.click()
    dialog = dialog_of(stage)
    assert dialog.lines["engine"].text() == "qwen3", "there is one alone"
    dialog.lines["route"].setText("coder")
    await stage.until(dialog.start.isEnabled)
    assert dialog.diff.toPlainText() == "$ ask: chat\n@ coder -> gpu/qwen3"
    dialog.start.click()
    await stage.until(lambda: stage.host.sent("POST", "/v1/hosts/gpu/promote"))
    await stage.until(lambda: detail._job.isVisible())
    job = detail.model.hosts.job("gpu")
    assert job is not None
    assert job.kind is JobKind.ROUTE_PROMOTE
    await stage.until(lambda: "coder" in section.backs)
    await stage.until(lambda: not stage.window.findChildren(PlannedDialog))
    section.backs["coder"].click()
    back = dialog_of(stage)
    await stage.until(back.start.isEnabled)
    assert back.command.label.text() == "sndr host rollback coder"
    back.start.click()
    await stage.until(lambda: stage.host.sent("POST", "/v1/routes/coder/rollback"))


async def test_a_machine_without_an_engine_host_shows_its_figures(stage: Stage) -> None:
    now = time.time()
    measured = Series(
        name="gpu.0.memory_used", unit="bytes", title="Memory of GPU 0", source="nvidia-smi",
        at=(now - 10, now - 5, now), values=(None, 2.0**30, 2.0**31),
    )  # fmt: skip
    silent = measured.model_copy(update={"name": "gpu.0.power", "values": (None, None, None)})
    total = measured.model_copy(update={"name": "ram.total", "values": (2.0**35,) * 3})
    stage.host.series = TelemetryPage(seq=1, step=5.0, series=(measured, silent, total))
    section: Any = (await opened(stage)).shown
    await stage.until(lambda: section.series.isVisible())
    assert list(section.series.lines) == ["gpu.0.memory_used"], (
        "what was not measured, or never changes, is no line"
    )
    assert section.series.lines["gpu.0.memory_used"].accessibleName() == "Memory of GPU 0, GiB: 2.0"
    stage.window.grab()


async def test_the_folder_that_an_engine_host_uses_is_known_without_being_named(stage: Stage) -> None:
    await stage.until(lambda: stage.state.host is not None and stage.state.models is not None)
    page, host = stage.state.models, stage.state.host
    assert page is not None
    assert host is not None
    stage.state.models = page.model_copy(update={"folders": ("/srv/models", "/more")})
    assert folder_of(stage.session) == "/srv/models"
    stage.state.models = page.model_copy(update={"folders": ()})
    assert folder_of(stage.session) == f"{host.data_folder}/models"
    assert folder_of(None) is None
