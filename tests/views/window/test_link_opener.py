"""Links that reach the window: they lead somewhere, say so, and start nothing."""

import asyncio
from pathlib import Path

import pytest
from PySide6.QtCore import Qt

from engine_host.protocol.remote.hosts import RemoteHost
from sndr_gui.kit.single_window import Handover
from sndr_gui.views.window.hung import Decision, decision, question
from tests.views.conftest import Stage, opened


def said(stage: Stage) -> str:
    """All that the window tells now, the newest last."""
    return "\n".join(notice.text for notice in stage.window.toasts.shown)


async def test_a_link_leads_to_a_page(stage: Stage) -> None:
    stage.window.open_links(["sndr://page/logs"])
    assert stage.window.current == "logs"
    assert said(stage) == "A link led here: Logs. It started nothing."
    stage.window.open_links(["sndr://chat"])
    assert stage.window.current == "chat"


@pytest.mark.parametrize(
    ("form", "page"),
    [
        ("sndr://page/launch?preset={}", "launch"),
        ("sndr://page/fit?preset={}", "fit"),
        ("sndr://preset/{}", "presets"),
    ],
)
async def test_a_link_chooses_a_preset_and_starts_nothing(stage: Stage, form: str, page: str) -> None:
    preset = stage.host.presets.presets[-1].preset.id
    stage.window.open_links([form.format(preset)])
    await stage.until(lambda: stage.window.current == page and preset in said(stage))
    if page == "launch":
        await stage.until(lambda: stage.pages.launch.presets.chosen == preset)
    assert not stage.host.sent("POST", "/v1/engines")


async def test_what_is_not_there_is_said(stage: Stage) -> None:
    stage.window.open_links(["sndr://page/launch?preset=never-heard-of"])
    await stage.until(lambda: "no preset never-heard-of" in said(stage))
    assert stage.window.current == "launch"
    stage.window.open_links(["sndr://host/nowhere"])
    assert "no host called nowhere" in said(stage)
    assert stage.window.current == "hosts"


async def test_a_host_is_shown_and_not_connected(stage: Stage) -> None:
    stage.host.set_remote(RemoteHost(name="far", destination="far", mode="engine_host"))
    await stage.until(lambda: stage.pages.fleet.names)
    stage.window.open_links(["sndr://host/far"])
    assert (stage.window.current, stage.pages.hosts.opened) == ("hosts", "far")
    assert stage.pages.fleet.chosen == ""
    await asyncio.sleep(0)
    assert not stage.host.sent("POST", "/v1/hosts/far/connect")


async def test_hostile_links_lead_nowhere(stage: Stage) -> None:
    before = stage.window.current
    for text in (
        "file:///etc/passwd",
        "sndr://run/x",
        "sndr://page/<b>x</b>",
        "sndr://" + "a" * 100_000,
        "\udcff",
    ):
        stage.window.open_links([text])
        assert "was not followed" in said(stage)
        assert len(said(stage)) < 300
    assert stage.window.current == before


async def test_what_a_link_names_is_looked_up_once_the_host_answers(tmp_path: Path) -> None:
    async with opened(tmp_path, connect=False) as stage:
        preset = stage.host.presets.presets[0].preset.id
        stage.window.open_links([f"sndr://page/launch?preset={preset}"])
        assert not said(stage)
        await stage.host.start()
        await stage.until(lambda: stage.pages.launch.presets.chosen == preset)


@pytest.mark.qt_log_ignore("does not support raise")
async def test_a_later_start_brings_the_window_back(stage: Stage) -> None:
    stage.window.showMinimized()
    assert stage.window.isMinimized()
    stage.window.take_over(Handover(("sndr://page/monitor",)))
    assert not stage.window.isMinimized()
    assert stage.window.isVisible()
    assert stage.window.current == "monitor"


@pytest.mark.parametrize(
    ("label", "wanted"),
    [("Try again", Decision.AGAIN), ("Start another window", Decision.ANOTHER), ("Cancel", Decision.LEAVE)],
)
async def test_one_that_hangs_is_named_and_the_answer_understood(
    stage: Stage, label: str, wanted: Decision
) -> None:
    box = question(4711)
    assert "process 4711" in box.text()
    assert box.textFormat() is Qt.TextFormat.PlainText
    box.open()
    next(one for one in box.buttons() if one.text() == label).click()
    assert decision(box) is wanted
    box.deleteLater()
