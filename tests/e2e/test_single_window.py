"""A second start of the window: the first comes to the front and follows its link; one that hangs is told."""

import signal
import subprocess
import sys
from pathlib import Path

from tests.e2e.desktop import Desktop, Gui
from tests.waiting import wait_until


def start(desktop: Desktop, home: Path, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "sndr_gui", *arguments],
        cwd=home,
        env=desktop.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def end_of(process: "subprocess.Popen[str]") -> tuple[int, str]:
    said, _ = process.communicate(timeout=60)
    return process.returncode, said


def test_a_second_start_raises_the_window_and_follows_its_link(gui: Gui, screen: Desktop, home: Path) -> None:
    gui.wait_for("Home")
    screen.do("xdotool", "search", "--onlyvisible", "--name", "SNDR Control Center", "windowminimize")
    assert wait_until(lambda: not windows(screen), 20)
    code, said = end_of(start(screen, home, "sndr://page/logs"))
    assert code == 0, said
    assert "window" in said
    assert wait_until(lambda: bool(windows(screen)), 20)
    gui.wait_for("Search the log")
    gui.wait_for_words("A link led here: Logs. It started nothing.")
    code, said = end_of(start(screen, home, "sndr://preset/demo-llamacpp"))
    assert code == 0, said
    gui.wait_for_words("A link led here: Presets, demo-llamacpp. It started nothing.")
    gui.wait_for("Make a variation")
    code, said = end_of(start(screen, home, "sndr://run/everything"))
    assert code == 0, said
    gui.wait_for_words("The link sndr://run/everything was not followed")
    assert gui.close() == 0
    assert not list((home / "run").glob("window*"))


def test_a_window_that_hangs_is_told(gui: Gui, screen: Desktop, home: Path) -> None:
    gui.wait_for("Home")
    gui.process.send_signal(signal.SIGSTOP)
    try:
        second = start(screen, home)
        question = ["xdotool", "search", "--sync", "--onlyvisible", "--name", "SNDR does not answer"]
        screen.do(*question, "windowfocus", "--sync")
        # Not sent to that window: it is gone when the key goes up.
        screen.do("xdotool", "key", "--clearmodifiers", "Escape")
        code, said = end_of(second)
        assert code == 6
        assert f"process {gui.process.pid}" in said
    finally:
        gui.process.send_signal(signal.SIGCONT)
    assert end_of(start(screen, home)) == (0, "The window that runs was brought to the front.\n")
    assert gui.close() == 0


def windows(desktop: Desktop) -> list[str]:
    found = subprocess.run(
        ["xdotool", "search", "--onlyvisible", "--name", "SNDR Control Center"],
        env=desktop.environment,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    return found.stdout.split()
