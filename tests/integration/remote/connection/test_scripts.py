"""Programs for other machines begin their answer on a line of its own: a shell may have printed before it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine_host.core.outside import json_text
from engine_host.remote.run import SCRIPTS

ASKED = b'{"path": "model.gguf", "size": 1, "sha256": "0", "mode": 420, "ask": true}\n'


@pytest.mark.parametrize(
    ("script", "asked", "told"),
    [("find_engine_host", b"", {"state": "none"}), ("receive_file", ASKED, {"size": 0})],
)
def test_half_a_line_of_a_start_file_does_not_spoil_the_answer(
    tmp_path: Path, script: str, asked: bytes, told: dict[str, object]
) -> None:
    printed = subprocess.run(
        [sys.executable, "-I", str(SCRIPTS / f"{script}.py")],
        input=asked, capture_output=True, check=True, env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
    ).stdout  # fmt: skip
    assert json_text.parse_last_line(b"Welcome, {you}: " + printed) == told
