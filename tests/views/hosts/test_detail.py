"""Everything of one host: its sections, and what they send; a FAKE host tells of it."""

from collections.abc import Callable
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from engine_host.protocol.base import Severity
from engine_host.protocol.endpoint.connect import EndpointModel
from engine_host.protocol.endpoint.routes import (
    Route,
    RouteStatus,
    RouteTargets,
    TargetState,
    TargetStatus,
)
from engine_host.protocol.launch.plans import Finding
from engine_host.protocol.remote.hosts import (
    HostSheet,
    RemoteEngine,
    RemoteHostState,
    RemoteMode,
    WatchdogEvent,
    WatchdogPage,
    WatchdogState,
)
from sndr_gui.models.hosts.facts import fact_part, fact_parts, models_of
from sndr_gui.views.hosts.changing import ChangeHostDialog
from sndr_gui.views.hosts.detail import HostDetail
from sndr_gui.views.hosts.sections.profile import ProfileDialog
from tests.views.conftest import Stage
from tests.views.hosts.test_page import facts, remote, view


async def opened(stage: Stage, section: str = "Overview", **more: Any) -> HostDetail:
    """The detail of a connected host, with one of its sections shown."""
    connected = {"state": RemoteHostState.CONNECTED, "connected_at": 1.0, "facts_at": 1.0}
    stage.host.set_remote(remote(**{**connected, **more}))
    page = view(stage)
    await stage.until(lambda: "gpu" in page.cards)
    page.cards["gpu"].buttons.made["open"].click()
    detail = page.detail
    assert detail is not None
    detail.show_section(section)
    model = detail.model
    await stage.until(lambda: model.sheet is not None and model.routes is not None)
    await stage.until(lambda: not model.pending("read") and not model.pending("routes"))
    return detail


def words(detail: HostDetail) -> str:
    """All that the section says."""
    return "\n".join(label.text() for label in detail.shown.findChildren(QLabel) if label.isVisible())


async def test_a_card_opens_and_escape_comes_back_to_it(stage: Stage) -> None:
    detail = await opened(stage)
    page = view(stage)
    closed: Callable[[], bool] = lambda: page.detail is None  # noqa: E731 - mypy takes an attribute for settled
    assert page.title.text() == "gpu"
    assert not page.cards["gpu"].isVisible()
    titles = [detail.tabs.tabText(place) for place in range(detail.tabs.count())]
    assert titles == [
        "Overview",
        "Traffic",
        "Services",
        "Files",
        "Facts",
        "Watchdogs",
        "Sheet",
        "Engine host",
    ]
    QTest.keyClick(detail.tabs, Qt.Key.Key_Right)
    assert detail.tabs.currentIndex() == 1
    QTest.keyClick(page, Qt.Key.Key_Escape)
    assert closed()
    assert page.cards["gpu"].isVisible()
    QTest.mouseClick(page.cards["gpu"], Qt.MouseButton.LeftButton)
    assert not closed()
    page.all_hosts.click()
    assert closed()


async def test_a_host_that_is_removed_elsewhere_closes_its_detail(stage: Stage) -> None:
    await opened(stage)
    page = view(stage)
    stage.host._remove_host("gpu")
    await stage.until(lambda: page.detail is None)


async def test_one_that_is_tried_again_can_be_tried_now(stage: Stage) -> None:
    detail = await opened(stage, state=RemoteHostState.RECONNECTING, connected_at=None)
    card = view(stage).cards["gpu"]
    for buttons in (card.buttons, detail.buttons):
        assert not buttons.made["retry"].isHidden()
        assert buttons.made["retry"].text() == "Try now"
        assert buttons.made["retry"].toolTip().endswith("sndr host connect gpu")
    detail.buttons.made["retry"].click()
    await stage.until(lambda: stage.host.sent("POST", "/v1/hosts/gpu/connect"))


async def test_the_overview_says_what_runs_and_what_looks_wrong(stage: Stage) -> None:
    finding = Finding(id="x", severity=Severity.WARNING, message="Models are on the root disk.")
    stage.host.sheet = HostSheet(host="gpu", findings=(finding,), markdown="# gpu\n")
    stage.host.remote_facts["gpu"] = facts()
    detail = await opened(stage)
    await stage.until(lambda: "NVIDIA L4" in words(detail))
    assert "Models are on the root disk." in words(detail)
    assert "0.0.0.0:8000" in words(detail)
    assert "Nothing is saved" in words(detail)


async def test_engines_are_kept_as_right_by_choice(stage: Stage) -> None:
    engines = tuple(
        RemoteEngine(kind=kind, pid=pid, user=user, arguments=(kind, "serve"))
        for kind, pid, user in (("vllm", 7, "me"), ("ollama", 8, "ollama"))
    )
    stage.host.remote_facts["gpu"] = facts(user="me", engines=engines)
    detail = await opened(stage)
    section: Any = detail.shown
    await stage.until(lambda: section.profile.keep.isEnabled())
    section.profile.keep.click()
    (dialog,) = stage.window.findChildren(ProfileDialog)
    assert {pid: box.isChecked() for pid, box in dialog.boxes.items()} == {7: True, 8: False}
    assert dialog.command.label.text() == "sndr host profile gpu --keep --engine 7"
    dialog.save.click()
    await stage.until(lambda: stage.host.sent("POST", "/v1/hosts/gpu/profile"))
    assert stage.host.sent("POST", "/v1/hosts/gpu/profile")[0]["engines"] == ["7"]
    await stage.until(lambda: "vllm serve" in words(detail))


async def test_routes_that_lead_there_are_shown_and_others_are_not(stage: Stage) -> None:
    targets = (
        TargetStatus(name="gpu/qwen3", state=TargetState.NOT_RUNNING, command="sndr --host gpu run qwen3"),
        TargetStatus(name="here", state=TargetState.RUNS),
    )
    led = RouteStatus(
        route=Route(id="coder", targets=RouteTargets(engines=("gpu/qwen3", "here")), changed_at=1.0),
        answers=True,
        targets=targets,
    )
    stage.host.routes["coder"] = led
    models = (EndpointModel(id="qwen3", context=4096, chat=True),)
    detail = await opened(stage, "Traffic", models=models)
    assert "coder" in words(detail)
    assert "sndr --host gpu run qwen3" in words(detail)
    assert "sndr routes set ID gpu/qwen3" in words(detail)
    assert "here" not in words(detail).splitlines()
    assert "What helps" not in words(detail), "the column says where it runs, too"


async def test_without_an_engine_host_there_is_no_show_to_start_a_model_with(stage: Stage) -> None:
    detail = await opened(stage, "Traffic", mode=RemoteMode.AGENTLESS)
    assert "No model answers there now." in words(detail)
    assert "Show" not in words(detail)


async def test_what_is_kept_changes_with_its_diff_first(stage: Stage) -> None:
    detail = await opened(stage, "Facts", notes="keep it cool", mode="agentless")
    section: Any = detail.shown
    section.change.click()
    (dialog,) = stage.window.findChildren(ChangeHostDialog)
    assert not dialog.save.isEnabled(), "nothing is changed yet"
    dialog.lines["model_root"].setText("/srv/$(id)")
    assert dialog.diff.toPlainText() == "+ Models in: /srv/$(id)"
    assert dialog.command.label.text() == "sndr host change gpu --model-root '/srv/$(id)'"
    dialog.lines["destination"].setText("-oProxyCommand=id")
    assert dialog.wrong.text().startswith("Address:")
    assert not dialog.save.isEnabled()
    dialog.lines["destination"].setText("me@other")
    dialog.agentless.setChecked(False)
    assert "@ Its connection ends" in dialog.diff.toPlainText()
    dialog.save.click()
    await stage.until(lambda: stage.host.sent("PUT", "/v1/hosts/gpu"))
    (sent,) = stage.host.sent("PUT", "/v1/hosts/gpu")
    assert (sent["destination"], sent["mode"], sent["notes"]) == ("me@other", "engine_host", "keep it cool")
    await stage.until(lambda: not stage.window.findChildren(ChangeHostDialog))


async def test_watchdogs_are_read_when_they_are_looked_at(stage: Stage) -> None:
    event = WatchdogEvent(at=900.0, state="restarted", why="no token in time\x1b[2J")
    dog = WatchdogState(
        service="vllm", state="given_up", why="three restarts", at=940.0, restarts=3, events=(event,)
    )
    stage.host.watchdogs = WatchdogPage(host="gpu", read_at=1_000.0, watchdogs=(dog,))
    detail = await opened(stage, "Watchdogs")
    await stage.until(lambda: "given up" in words(detail))
    assert "three restarts" in words(detail)
    assert "restarted" in words(detail)
    assert "\x1b" not in words(detail)


async def test_without_a_watchdog_the_section_says_what_one_is_for(stage: Stage) -> None:
    detail = await opened(stage, "Watchdogs")
    await stage.until(lambda: "No service there has a watchdog." in words(detail))
    assert "sndr launch PRESET --render systemd" in words(detail)


async def test_the_sheet_is_shown_without_what_a_terminal_would_obey(stage: Stage) -> None:
    stage.host.sheet = HostSheet(host="gpu", findings=(), markdown="# gpu\n\x1b[2J## Measured\n")
    detail = await opened(stage, "Sheet")
    section: Any = detail.shown
    assert "## Measured" in section.content.toPlainText()
    assert "\x1b" not in section.content.toPlainText()


@pytest.mark.parametrize("hostile", ["<b>bold</b>\x1b[2J", "a" * 5_000, "\u202eevil", "two\nlines"])
async def test_words_of_another_machine_widen_nothing(stage: Stage, hostile: str) -> None:
    engine = RemoteEngine(kind=hostile, pid=1, user=hostile, arguments=(hostile,), listens=(hostile,))
    read = dict.fromkeys(("engines", "units", "containers", "tools", "system"), 1.0)
    stage.host.remote_facts["gpu"] = facts(
        read_at=read, engines=(engine,), units=(hostile,), containers=(hostile,), tools={hostile: hostile},
        system=hostile, problems={"units": hostile},
    )  # fmt: skip
    stage.window.resize(900, 700)
    detail = await opened(stage, notes=hostile)
    for title in ("Overview", "Files", "Services", "Facts", "Engine host"):
        detail.show_section(title)
        stage.window.grab()
        assert detail.shown.minimumSizeHint().width() <= 900 - 208, title


def test_what_was_not_read_is_no_number() -> None:
    assert {part.age for part in fact_parts(None, 0.0)} == {"never read"}
    part = fact_part(facts(read_at={"gpus": 880.0}), "gpus", 1_000.0)
    assert part.age == "read 2 min ago"
    assert part.rows[0][3:6] == ("—", "—", "—")
    assert fact_part(facts(problems={"disks": "df is missing"}), "disks", 1.0).problem == "df is missing"


def test_the_model_of_an_engine_is_told_from_its_command_line() -> None:
    said = {
        ("llama-server", "-m", "/m/a.gguf", "--alias", "sndr-demo", "--port", "1"): "sndr-demo",
        ("vllm", "serve", "/m", "--served-model-name", "a", "b", "--port", "1"): "a and b",
        ("vllm", "--served-model-name=a"): "a",
        ("llama-server", "--alias"): "",
        (): "",
    }
    for arguments, model in said.items():
        engine = RemoteEngine(kind="x", pid=1, user="me", arguments=arguments)
        assert models_of(engine) == model
        part = fact_part(facts(engines=(engine,)), "engines", 1.0)
        assert part.headings[1] == "Model"
        assert part.rows[0][1] == (model or "—")
