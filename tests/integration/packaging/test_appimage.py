"""The one file of an AppImage: which of the programs inside it starts, by its first word or its name."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

APP_RUN = Path(__file__).resolve().parents[3] / "packaging/appimage/AppRun"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="AppImages are Linux's")


@pytest.mark.parametrize(
    ("called", "words", "started"),
    [
        ("/opt/SNDR.AppImage", [], ["sndr-gui"]),
        ("/opt/SNDR.AppImage", ["sndr://chat"], ["sndr-gui", "sndr://chat"]),
        ("/opt/SNDR.AppImage", ["sndr", "status", "a b"], ["sndr", "status", "a b"]),
        ("/opt/bin/sndr", ["status"], ["sndr", "status"]),
        ("sndr", [], ["sndr"]),
        ("sndr-gui", ["--at-login"], ["sndr-gui", "--at-login"]),
        (
            "/opt/SNDR.AppImage",
            ["--own-program=engine_host", "serve"],
            ["sndr", "--own-program=engine_host", "serve"],
        ),
        ("sndr-gui", ["--own-program=engine_host", "serve"], ["sndr", "--own-program=engine_host", "serve"]),
        (None, [], ["sndr-gui"]),
    ],
)
def test_it_starts(tmp_path: Path, called: str | None, words: list[str], started: list[str]) -> None:
    root = tmp_path / "it is here"
    inside = root / "usr/lib/sndr-control-center"
    inside.mkdir(parents=True)
    for name in ("sndr", "sndr-gui"):
        (inside / name).write_text(f'#!/bin/sh\nprintf "%s\\n" {name} "$@"\n', encoding="utf-8")
        (inside / name).chmod(0o755)
    (root / "AppRun").write_bytes(APP_RUN.read_bytes())
    (root / "AppRun").chmod(0o755)
    environment = {"PATH": os.environ["PATH"]} | ({} if called is None else {"ARGV0": called})
    done = subprocess.run(
        [root / "AppRun", *words], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines() == started
