"""Without a display the window says so in a sentence, with an exit code of its own."""

import socket
from pathlib import Path

from sndr_gui.kit.display import refusal


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
