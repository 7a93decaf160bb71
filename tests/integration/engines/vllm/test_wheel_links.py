"""The tags of a real environment's own Python."""

import subprocess
import sys
from pathlib import Path

import uv

from engine_host.engines.vllm.wheel_links import environment_tags
from packaging import tags


def test_the_environments_tags_are_those_of_its_own_python(tmp_path: Path) -> None:
    home = tmp_path / "e"
    subprocess.run([uv.find_uv_bin(), "venv", "-q", "--python", sys.executable, str(home)], check=True)
    assert environment_tags(home) == frozenset(tags.sys_tags())
