"""The program as people get it: our wheel in an environment of its own, made once for all tests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine_host.engines.vllm.package_sources import package_sources
from tests.integration.host_process import environment

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "engine_host" / "remote" / "install" / "locks" / "host.lock"


def uv(*arguments: str) -> None:
    """Run uv; packages come out of its cache where the set-up put them, else over the network."""
    from uv import find_uv_bin

    ended = subprocess.run(
        [find_uv_bin(), *arguments],
        env={**os.environ, "UV_PYTHON_DOWNLOADS": "never", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree."""
    folder = tmp_path_factory.mktemp("wheel")
    script = ROOT / "packaging" / "package.sh"
    subprocess.run([str(script), str(folder)], capture_output=True, timeout=240, check=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment with the wheel and what host.lock names; no window."""
    home = tmp_path_factory.mktemp("installed") / "environment"
    uv("venv", "-q", "--python", sys.executable, str(home))
    into = ("pip", "install", "-q", "--python", str(home / "bin" / "python"))
    uv(*into, "--require-hashes", "--only-binary", ":all:", *package_sources().arguments, "-r", str(LOCK))
    uv(*into, "--offline", "--no-deps", str(wheel))
    return home / "bin"


def run_installed(program: Path, *arguments: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """Run an installed program to its end, from a folder that holds none of our sources."""
    found = environment()
    found.pop("PYTHONPATH", None)
    return subprocess.run(
        [str(program), *arguments],
        cwd=cwd,
        env=found,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
