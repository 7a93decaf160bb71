"""Programs for other machines begin their answer on a line of its own: a shell may have printed before it."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine_host.core.outside import json_text
from engine_host.remote.run import SCRIPTS

ASKED = b'{"path": "model.gguf", "size": 1, "sha256": "0", "mode": 420, "ask": true}\n'


@pytest.mark.parametrize(
    ("script", "asked", "told"),
    [("find_engine_host", b"", {"state": "none", "run": ""}), ("receive_file", ASKED, {"size": 0})],
)
def test_half_a_line_of_a_start_file_does_not_spoil_the_answer(
    tmp_path: Path, script: str, asked: bytes, told: dict[str, object]
) -> None:
    printed = subprocess.run(
        [sys.executable, "-I", str(SCRIPTS / f"{script}.py")],
        input=asked, capture_output=True, check=True, env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
    ).stdout  # fmt: skip
    said = json_text.parse_last_line(b"Welcome, {you}: " + printed)
    assert said.pop("data", str(tmp_path / ".local/share/sndr")) == str(tmp_path / ".local/share/sndr")
    assert said == told


def look(home: Path) -> dict[str, str]:
    """What the program that looks for the engine host tells of a home."""
    printed = subprocess.run(
        [sys.executable, "-I", str(SCRIPTS / "find_engine_host.py")],
        input=b"", capture_output=True, check=True, env={"HOME": str(home), "PATH": os.environ["PATH"]},
    ).stdout  # fmt: skip
    return dict(json_text.parse_last_line(printed))


def test_no_answer_yet_is_not_told_as_not_installed(tmp_path: Path) -> None:
    data, run = tmp_path / ".local/share/sndr", tmp_path / "run"
    assert look(tmp_path)["state"] == "none"
    data.mkdir(parents=True)
    assert look(tmp_path)["state"] == "none"
    claim = data / "host.claim"
    claim.touch()
    assert look(tmp_path)["state"] == "ended", "one that ended in order leaves it empty"
    with claim.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert look(tmp_path)["state"] == "turning", "one that has just begun"
        claim.write_text(json.dumps({"run": str(run), "pid": 7}), "utf-8")
        assert look(tmp_path) == {"state": "turning", "run": str(run), "pid": "7"}
        run.mkdir(mode=0o700)
        assert look(tmp_path)["state"] == "turning"
    assert look(tmp_path)["state"] == "ended", "one that was killed"
    shutil.rmtree(data)
    data.symlink_to(data.name)
    assert look(tmp_path)["state"] == "unreadable", "of a loop nobody can say what is in it"


@pytest.mark.parametrize(
    ("state", "age", "again", "told"),
    [
        ("active", 5, 0, "starting"),
        ("active", 500, 0, "installed"),
        ("inactive", 5, 0, "installed"),
        ("active", 5, 9, "installed"),
        ("", 0, 0, "installed"),
    ],
)
def test_an_engine_host_whose_service_began_a_moment_ago_is_starting(
    tmp_path: Path, state: str, age: int, again: int, told: str
) -> None:
    """As after a restart of the machine; FAKE systemctl."""
    (tmp_path / ".local/share/sndr/host/current").mkdir(parents=True)
    began = int((time.clock_gettime(time.CLOCK_MONOTONIC) - age) * 1e6)
    fake = tmp_path / "systemctl"
    fake.write_text(
        f"#!/bin/sh\necho ActiveState={state}\necho ActiveEnterTimestampMonotonic={began}\n"
        f"echo NRestarts={again}\n",
        "utf-8",
    )
    fake.chmod(0o755 if state else 0o644)
    printed = subprocess.run(
        [sys.executable, "-I", str(SCRIPTS / "find_engine_host.py")],
        input=b"", capture_output=True, check=True, env={"HOME": str(tmp_path), "PATH": str(tmp_path)},
    ).stdout  # fmt: skip
    assert json_text.parse_last_line(printed)["state"] == told
