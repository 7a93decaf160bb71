"""Several hosts in one window: each with its own pages, state and connection; two FAKE hosts answer."""

import time
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit

from engine_host.protocol.base import Severity
from engine_host.protocol.engines import EngineState
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.events import LogLineEvent, NoticeEvent, RemoteHostEvent
from engine_host.protocol.launch.consents import ConsentNeeded, Demand
from engine_host.protocol.logs import LogLine
from engine_host.protocol.remote.hosts import RemoteHost, RemoteHostState
from sndr_gui.host.connection import Phase
from sndr_gui.host.notices import Notice
from sndr_gui.host.session import Session
from sndr_gui.kit.loop.coroutines import EventLoop
from sndr_gui.views.hosts.page import HostsView
from sndr_gui.views.widgets.buttons import Button
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.window.pages import PAGES
from sndr_gui.views.window.start_question import ConsentDialog
from tests.views.conftest import Stage
from tests.views.fakes.host import FakeHost
from tests.views.home.test_last_ran import ran
from tests.views.samples import host as samples


def connected(gpu: FakeHost) -> RemoteHost:
    """The other machine as this one's host tells of it while it is connected."""
    return RemoteHost(
        name="gpu",
        destination="me@gpu.example",
        mode="engine_host",
        state=RemoteHostState.CONNECTED,
        sentence="Connected.",
        connected_at=time.time(),
        control_socket=str(gpu.socket),
        control_token=str(gpu.token_file),
    )


class SeveralHosts(Stage):
    """A window, this machine's FAKE host, and where a test asks for it the FAKE host of another one."""

    gpu: FakeHost | None = None

    async def open(self, connect: bool = True) -> None:
        """Show the window, joined to this machine's host and to the other one."""
        await super().open(connect)
        if self.gpu is not None:
            await self.gpu.start()
            self.host.set_remote(connected(self.gpu))
            await self.until(lambda: self.there.connection.connected)

    @property
    def there(self) -> Session:
        """The session with the other machine."""
        return self.pages.fleet.session_with("gpu")

    async def quiet(self) -> None:
        """Wait until the pages have read what they show: a request that is cut off leaves its socket."""
        await self.until(lambda: len(self.there.tasks._live) <= 1)

    async def close(self) -> None:
        """Close everything."""
        await super().close()
        if self.gpu is not None:
            await self.gpu.stop()
            assert not self.gpu.faults, self.gpu.faults


@pytest.fixture
def stage(loop: EventLoop, tmp_path: Path) -> SeveralHosts:
    """A window over this machine's host."""
    return SeveralHosts(tmp_path)


@pytest.fixture
def gpu(stage: SeveralHosts, tmp_path: Path) -> FakeHost:
    """The FAKE host of another machine, which this machine's tells of as connected."""
    stage.gpu = FakeHost(tmp_path / "gpu")
    stage.gpu.run_id = "run-gpu"
    return stage.gpu


async def test_with_this_machine_alone_there_is_nothing_to_choose(stage: SeveralHosts) -> None:
    assert not stage.window.host_choice.isVisible()
    assert not [entry for entry in stage.window.palette_box._entries() if entry.title.startswith("Host:")]


async def test_a_host_is_chosen_and_every_page_is_about_it(stage: SeveralHosts, gpu: FakeHost) -> None:
    choice = stage.window.host_choice
    assert choice.isVisible()
    assert choice.box.listed == ["This machine  ·  connected", "gpu  ·  connected"]
    assert choice.box.currentText() == "This machine"
    stage.host.set_engine(samples.engine(EngineState.READY, id="engine-here", name="here-model"))
    gpu.set_engine(samples.engine(EngineState.READY, id="engine-there", name="there-model"))
    await stage.until(lambda: stage.state.running and stage.there.state.running)
    stage.window.go("engine")
    local = stage.window.page
    opened: list[bool] = []
    choice.box.showPopup = lambda: opened.append(True)  # type: ignore[method-assign]  # No display here.
    QTest.keyClick(stage.window, Qt.Key.Key_H, Qt.KeyboardModifier.ControlModifier)
    assert opened
    choice.box.setCurrentIndex(1)
    choice.box.activated.emit(1)
    assert stage.pages.fleet.chosen == "gpu"
    assert stage.window.page is not local
    for page in PAGES:
        stage.window.go(page.name)
        shown = " ".join(str(one.text()) for one in stage.window.page.findChildren(QLineEdit))
        shown += " ".join(one.toPlainText() for one in stage.window.page.findChildren(QPlainTextEdit))
        assert "here-model" not in shown
    assert stage.window.engine_choice is not None
    stage.window.go("engine")
    stage.pages.fleet.choose("")
    assert choice.word.text() == "connected"
    assert stage.window.page is local, "what was on the pages of this machine is there again"
    await stage.quiet()


async def test_the_smallest_window_has_room_for_the_choice(stage: SeveralHosts, gpu: FakeHost) -> None:
    stage.window.resize(900, 600)
    await stage.until(lambda: stage.window.height() == 600)
    assert stage.window.minimumSizeHint().height() <= 600
    assert stage.window.host_choice.box.height() >= stage.window.host_choice.box.minimumSizeHint().height()


async def test_what_happens_there_reaches_nothing_of_here(stage: SeveralHosts, gpu: FakeHost) -> None:
    line = LogLine(source="host", number=1, at=1.0, severity=Severity.INFO, text="a line of gpu")
    seen: list[object] = []
    stage.state.logged.connect(seen.append)
    got: list[object] = []
    stage.there.state.logged.connect(got.append)
    gpu.publish(LogLineEvent(lines=(line,)))
    gpu.set_engine(samples.engine(EngineState.READY))
    await stage.until(lambda: got and stage.there.state.engines)
    assert not seen
    assert not stage.state.engines


async def test_what_is_sent_from_a_page_goes_to_its_host(stage: SeveralHosts, gpu: FakeHost) -> None:
    stage.pages.fleet.choose("gpu")
    context = stage.window._context
    assert context is not None
    assert context.session.host == "gpu"
    context.launch.models.rescan()
    await stage.until(lambda: gpu.sent("POST", "/v1/models/scan"))
    assert not stage.host.sent("POST", "/v1/models/scan")


async def test_commands_on_the_pages_name_the_host(stage: SeveralHosts, gpu: FakeHost) -> None:
    stage.pages.fleet.choose("gpu")
    for name in ("home", "launch", "routes", "engine", "monitor", "presets", "fit", "patches"):
        stage.window.go(name)
        page = stage.window.page
        texts = [one.label.text() for one in page.findChildren(CopyField) if one.isVisible()]
        texts += [one.toolTip() for one in page.findChildren(Button) if one.isVisible()]
        wrong = [one for one in texts if "sndr " in one and "sndr --host gpu " not in one]
        assert not wrong, name
    stage.window.go("connect")
    texts = [one.label.text() for one in stage.window.page.findChildren(CopyField) if one.isVisible()]
    assert not [one for one in texts if "--host gpu" in one], "editors are of this machine"
    await stage.quiet()


async def test_what_ran_last_there_is_started_again_from_hosts(stage: SeveralHosts, gpu: FakeHost) -> None:
    stage.window.go("hosts")
    page = stage.window.page
    assert isinstance(page, HostsView)
    stage.pages.hosts.open("gpu")
    await stage.until(lambda: page.detail is not None)
    detail = page.detail
    assert detail is not None
    detail.show_section("Engine host")
    section: Any = detail.shown
    await stage.until(lambda: section.again is not None)
    assert not section.again.isVisible(), "nothing ran there yet"
    gpu.set_engine(ran(EngineState.READY))
    await stage.until(lambda: stage.there.state.running)
    gpu.set_engine(ran())
    await stage.until(section.again.isVisible)
    assert section.again.text() == section.again.accessibleName() == "Start qwen again"
    assert section.again.toolTip().endswith("sndr --host gpu run qwen.gguf")
    assert section.again.shortcut().isEmpty(), "Ctrl+R is of Home and Engine"
    needed = ConsentNeeded(digest="ab12", demands=(Demand(file="x", key="a", what="--rm", does="It runs."),))
    gpu.refuse["/v1/engines"] = Problem(
        reason=Reason.CONSENT_NEEDED, message="It asks for more.", evidence=needed.model_dump(mode="json")
    )
    QTest.keyClick(section.again, Qt.Key.Key_Return)
    assert section.again.text() == "Starting…"
    await stage.until(lambda: gpu.sent("POST", "/v1/engines"))
    await stage.until(lambda: stage.window.findChildren(ConsentDialog))
    (dialog,) = stage.window.findChildren(ConsentDialog)
    gpu.refuse.clear()
    dialog.allow.click()
    await stage.until(lambda: not section.again.isVisible())
    assert stage.pages.fleet.chosen == "", "the page Hosts stays in front"
    assert not stage.host.sent("POST", "/v1/engines")
    await stage.quiet()


async def test_files_of_this_machine_are_not_offered_for_another(stage: SeveralHosts, gpu: FakeHost) -> None:
    stage.window.go("launch")
    chooser = "Add model folder…"
    here = next(one for one in stage.window.page.findChildren(Button) if one.accessibleName() == chooser)
    assert here.isEnabled()
    stage.pages.fleet.choose("gpu")
    there = next(one for one in stage.window.page.findChildren(Button) if one.accessibleName() == chooser)
    assert not there.isEnabled()
    assert "name the path on gpu" in there.toolTip()
    assert "settings set models.folders PATH" in there.toolTip()
    await stage.quiet()


async def test_the_address_of_another_endpoint_is_not_given_out_as_one_of_here(
    stage: SeveralHosts, gpu: FakeHost
) -> None:
    stage.pages.fleet.choose("gpu")
    stage.window.go("home")
    fields = [one.label.text() for one in stage.window.page.findChildren(CopyField)]
    assert "sndr --host gpu chat" in fields
    assert not [one for one in fields if "curl" in one]
    await stage.quiet()


async def test_a_lost_connection_is_of_that_host_alone(stage: SeveralHosts, gpu: FakeHost) -> None:
    gpu.set_engine(samples.engine(EngineState.READY, name="there-model"))
    await stage.until(lambda: stage.there.state.running)
    lost = connected(gpu).model_copy(
        update={"state": RemoteHostState.RECONNECTING, "sentence": "Trying again.", "control_socket": None}
    )
    stage.host.set_remote(lost)
    await gpu.stop()
    await stage.until(lambda: stage.there.connection.phase is Phase.RECONNECTING)
    assert stage.connection.connected
    assert "gpu  ·  reconnecting" in stage.window.host_choice.box.listed[1]
    assert stage.there.connection.lost_at is not None
    assert stage.there.state.engines, "its last state stays, with its age"
    stage.pages.fleet.choose("gpu")
    stage.window.go("engine")
    await gpu.start()
    stage.host.set_remote(connected(gpu))
    await stage.until(lambda: stage.there.connection.connected)


async def test_the_palette_offers_the_hosts(stage: SeveralHosts, gpu: FakeHost) -> None:
    entries = {entry.title: entry for entry in stage.window.palette_box._entries()}
    assert entries["Host: gpu"].hint == "host, connected"
    entries["Host: gpu"].run()
    assert stage.pages.fleet.chosen == "gpu"
    entries["Host: this machine"].run()
    assert stage.pages.fleet.chosen == ""


async def test_folded_the_choice_shows_the_state_and_tells_the_rest(
    stage: SeveralHosts, gpu: FakeHost
) -> None:
    choice, sidebar = stage.window.host_choice, stage.window.sidebar
    sidebar.fold.click()
    assert not choice.word.isVisible()
    stage.window.grab()
    assert 0 < choice.box.geometry().right() < sidebar.width()
    choice.box.activated.emit(1)
    assert stage.pages.fleet.chosen != choice.box.itemData(0)
    assert choice.box.toolTip().startswith("gpu  ·  connected\n")
    sidebar.fold.click()
    assert choice.word.isVisible()
    assert choice.box.toolTip().startswith("Show the pages of another host")


async def test_a_host_that_is_not_connected_is_connected_when_chosen(stage: SeveralHosts) -> None:
    stage.host.set_remote(RemoteHost(name="far", destination="far", mode="engine_host"))
    await stage.until(lambda: stage.pages.fleet.names)
    stage.pages.fleet.choose("far")
    await stage.until(lambda: stage.host.sent("POST", "/v1/hosts/far/connect"))
    await stage.until(lambda: "far  ·  connecting" in stage.window.host_choice.box.listed[1])
    assert "far" in stage.window._status.text()


async def test_a_host_that_is_removed_leaves_nothing(stage: SeveralHosts, gpu: FakeHost) -> None:
    stage.pages.fleet.choose("gpu")
    stage.window.go("home")
    stage.host.publish(RemoteHostEvent(remote=stage.host.remote_hosts.pop("gpu"), removed=True))
    await stage.until(lambda: not stage.pages.fleet.names)
    assert stage.pages.fleet.chosen == ""
    assert not [key for key in stage.window._built if key[0] == "gpu"]
    assert not stage.window.host_choice.isVisible()


async def test_notices_of_another_host_say_whose_they_are(stage: SeveralHosts, gpu: FakeHost) -> None:
    told: list[Notice] = []
    stage.notices.posted.connect(told.append)
    stage.pages.fleet.choose("gpu")
    gpu.publish(NoticeEvent(key="disk", severity=Severity.WARNING, text="The disk is full: sndr status"))
    await stage.until(lambda: told)
    assert told[0].text == "gpu: The disk is full: sndr --host gpu status"


async def test_another_version_is_told_and_breaks_nothing(stage: SeveralHosts, tmp_path: Path) -> None:
    old = FakeHost(tmp_path / "old")
    old.major = 0
    await old.start()
    stage.host.set_remote(connected(old))
    await stage.until(lambda: stage.pages.fleet.names)
    await stage.until(lambda: stage.there.connection.phase is Phase.MISMATCH)
    assert "speaks protocol 0" in stage.there.connection.sentence
    assert "other version" in stage.window.host_choice.box.listed[1]
    stage.pages.fleet.choose("gpu")
    assert stage.connection.connected
    await old.stop()
