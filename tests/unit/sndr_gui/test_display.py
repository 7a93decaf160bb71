"""Without a display the window says so in a sentence, with an exit code of its own."""

import os
import subprocess
import sys

import pytest

from engine_host.cli_output import Exit
from sndr_gui.display import NO_DISPLAY, refusal


def test_what_counts_as_a_display() -> None:
    assert refusal("linux", {}, []) is not None
    assert refusal("linux", {"DISPLAY": "", "WAYLAND_DISPLAY": ""}, []) is not None
    for environment in (
        {"DISPLAY": ":0"},
        {"WAYLAND_DISPLAY": "wayland-0"},
        {"QT_QPA_PLATFORM": "offscreen"},
    ):
        assert refusal("linux", environment, []) is None
    assert refusal("linux", {}, ["-platform", "vnc"]) is None
    assert refusal("darwin", {}, []) is None
    assert refusal("win32", {}, []) is None


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is always a display")
def test_the_program_ends_with_one_sentence() -> None:
    hidden = {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        [sys.executable, "-m", "sndr_gui"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == NO_DISPLAY == Exit.NO_DISPLAY
    assert done.stdout == ""
    assert "There is no display" in done.stderr
    assert len(done.stderr.splitlines()) == 1
