"""Records that the program wrote for itself, and that anything may have become since: none holds it up."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from engine_host.cli import render_folder
from engine_host.engines.llamacpp.build.install import installed_build
from engine_host.engines.vllm.environment_folder import RECORD, read_record
from sndr_gui.kit.settings import SettingsFile

READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a build": ("build.json", installed_build),
    "an environment": (RECORD, read_record),
    "a rendering": (render_folder._RECORD, render_folder._record),
}
NESTED = b"[" * 100_000
SPOILT: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a folder": Path.mkdir,
    "nested": lambda path: path.write_bytes(NESTED),
    "nested in an object": lambda path: path.write_bytes(b'{"files":' + NESTED),
    "no object": lambda path: path.write_bytes(b"[]"),
    "no text": lambda path: path.write_bytes(b"\xff\xfe{}"),
    "too long": lambda path: path.write_bytes(b'{"name": "' + b"x" * (2 << 20) + b'"}'),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
@pytest.mark.parametrize(("name", "read"), READERS.values(), ids=READERS)
def test_a_spoilt_record_is_no_record(
    name: str, read: Callable[[Path], object], spoil: Callable[[Path], object], tmp_path: Path
) -> None:
    nothing = read(tmp_path)
    spoil(tmp_path / name)
    assert read(tmp_path) == nothing


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_spoilt_settings_of_the_window_are_its_defaults(
    spoil: Callable[[Path], object], tmp_path: Path
) -> None:
    spoil(tmp_path / "window.json")
    assert SettingsFile(tmp_path / "window.json").current.page in {"", "home"}
