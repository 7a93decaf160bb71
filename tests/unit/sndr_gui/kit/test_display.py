"""Without a display the window says so in a sentence, with an exit code of its own."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from engine_host.cli.output import Exit
from sndr_gui.kit.display import NO_DISPLAY, refusal


def test_what_counts_as_a_display() -> None:
    assert refusal("linux", {}, []) is not None
    assert refusal("linux", {"DISPLAY": "", "WAYLAND_DISPLAY": ""}, []) is not None
    assert refusal("linux", {"QT_QPA_PLATFORM": "offscreen"}, []) is None
    assert refusal("linux", {}, ["-platform", "vnc"]) is None
    assert refusal("darwin", {}, []) is None
    assert refusal("win32", {}, []) is None


def test_a_display_that_is_dead_is_named() -> None:
    for environment in (
        {"DISPLAY": ":4713"},
        {"DISPLAY": "not a display"},
        {"WAYLAND_DISPLAY": "wayland-4713", "XDG_RUNTIME_DIR": "/nowhere"},
        {"WAYLAND_DISPLAY": "wayland-4713", "DISPLAY": ":4713"},
    ):
        sentence = refusal("linux", environment, [])
        assert sentence is not None
        assert "display answers at" in sentence, sentence


def test_a_wayland_that_listens_is_enough(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "wayland-0"))
        server.listen()
        environment = {"WAYLAND_DISPLAY": "wayland-0", "XDG_RUNTIME_DIR": str(tmp_path), "DISPLAY": ":4713"}
        assert refusal("linux", environment, []) is None
        del environment["XDG_RUNTIME_DIR"]
        environment["WAYLAND_DISPLAY"] = str(tmp_path / "wayland-0")
        assert refusal("linux", environment, []) is None


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is always a display")
@pytest.mark.parametrize(
    ("named", "sentence"), [({}, "There is no display"), ({"DISPLAY": ":4713"}, "No display answers")]
)
def test_the_program_ends_with_one_sentence(named: dict[str, str], sentence: str) -> None:
    hidden = {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        [sys.executable, "-m", "sndr_gui"],
        env=environment | named,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == NO_DISPLAY == Exit.NO_DISPLAY
    assert done.stdout == ""
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1
