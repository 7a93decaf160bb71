"""The whole way of a new person by mouse, and by keyboard alone; and parts that are killed on the way."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from engine_host.protocol.operations import table as ops
from engine_host.protocol.settings import SettingsChange
from engine_host.protocol.telemetry import TelemetryQuery
from tests.e2e.desktop import ROOT, Desktop, Gui, host_client, running_engine, window
from tests.e2e.test_window import QUESTION, is_alive
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(300)


def by_mouse(gui: Gui, name: str) -> None:
    """Click a control."""
    gui.click(name, 60)


def by_keyboard(gui: Gui, name: str) -> None:
    """Go to a control by Tab, and press it."""
    gui.wait_for(name, 60)
    gui.tab_to(name)
    gui.press("space")


def page_by_mouse(gui: Gui, page: str) -> None:
    """Click a page in the sidebar."""
    gui.click(page)


def page_by_keyboard(gui: Gui, page: str) -> None:
    """Open a page with its keys."""
    gui.open(page)


WAYS = ((by_mouse, page_by_mouse), (by_keyboard, page_by_keyboard))


@pytest.mark.parametrize(("use", "show"), WAYS, ids=("mouse", "keyboard"))
def test_from_the_first_run_to_stop(
    screen: Desktop,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    use: Callable[[Gui, str], None],
    show: Callable[[Gui, str], None],
) -> None:
    person = home / "person"
    (person / ".claude").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(person))
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "OPENCODE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    picture = ROOT / "build" / "e2e" / f"whole-way-{use.__name__}.png"
    with window(screen, home, picture, first_run=True) as gui:
        use(gui, "Start it")
        use(gui, "Open Chat")
        gui.wait_until_shown("Message")
        if use is by_mouse:
            gui.click("Message")
        else:
            gui.tab_to("Message")
        gui.type(QUESTION)
        gui.press("Return")
        assert wait_until(lambda: bool(gui.answers() and gui.answers()[-1]), 60)
        # An editor is told of the endpoint, after a look at what is written.
        show(gui, "Connect")
        gui.wait_for_words("Claude Code", 30)
        use(gui, "Write it for me")
        use(gui, "Write")
        gui.wait_for("Undo", 30)
        assert any(b"127.0.0.1" in path.read_bytes() for path in person.rglob("*") if path.is_file())
        show(gui, "Bench")
        use(gui, "Measure")
        gui.wait_for_words("1 run", 120)
        show(gui, "Patches")
        gui.wait_for_words("in the catalogue", 30)
        show(gui, "Home")
        use(gui, "Stop")
        gui.wait_for("Start sndr-demo again", 60)
        gui.desktop.do("wmctrl", "-c", "SNDR Control Center") if use is by_mouse else gui.press("ctrl+q")
        assert gui.process.wait(20) == 0


def test_a_window_that_was_killed_finds_its_engine_when_it_is_started_again(
    screen: Desktop, home: Path
) -> None:
    picture = ROOT / "build" / "e2e" / "window-killed.png"
    with window(screen, home, picture) as gui:
        gui.click("Start the demo model", 60)
        gui.wait_for("Stop", 60)
        with host_client() as client:
            values = {"host.outlive_window": True, "engine.keep": True}
            client.call(ops.CHANGE_SETTINGS, SettingsChange(values=values))
            engine, host = running_engine(client), client.call(ops.HOST).pid
        assert engine is not None
        # The window knows of it before it is killed.
        gui.wait_for_words("stays when this window closes")
        gui.process.kill()
        gui.process.wait(5)
    with window(screen, home, picture) as again:
        # It tells of the crash first; nothing waits for that.
        again.click("Close", 30)
        again.wait_for("Stop", 30)
        with host_client() as client:
            found = running_engine(client)
            assert client.call(ops.HOST).pid == host
            assert found is not None
            assert (found.id, found.pid) == (engine.id, engine.pid)
        again.open("Chat")
        again.click("Message")
        again.type(QUESTION)
        again.press("Return")
        assert wait_until(lambda: bool(again.answers() and again.answers()[-1]), 60)
        with host_client() as client:
            client.call(ops.QUIT_HOST)
        assert wait_until(lambda: not is_alive(host), 20)
        again.process.terminate()
        again.process.wait(20)


def test_a_host_that_was_killed_is_started_again_and_the_graphs_are_kept(gui: Gui) -> None:
    gui.click("Start the demo model", 30)
    gui.wait_for("Stop", 60)
    asked = TelemetryQuery(names=("ram.used",), since=time.time() - 300)
    with host_client() as client:
        host = client.call(ops.HOST).pid
        # What is measured while an engine runs is on the disk ten seconds later.
        assert wait_until(lambda: len(client.call(ops.TELEMETRY, asked).series[0].at) > 30, 120)
    killed = time.time()
    os.kill(host, signal.SIGKILL)
    gui.wait_for("Start sndr-demo again", 60)
    with host_client() as client:
        assert client.call(ops.HOST).pid != host
        kept = client.call(ops.TELEMETRY, asked).series[0]
    before = [at for at, value in zip(kept.at, kept.values, strict=True) if at < killed and value is not None]
    assert before, "what was measured before is gone"
    gui.open("Monitor")
    gui.wait_for_words("RAM used")
    assert gui.close() == 0
