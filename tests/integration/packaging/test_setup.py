"""What the set-up of a clone does to an environment that another clone made."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.installed_program import ROOT

PTH = Path("lib") / "python3.11" / "site-packages" / "sndr-control-center.pth"
NEEDED = ("setup.sh", "system-packages.txt", "locks/run.lock", "locks/bootstrap.lock")


def write_clone(folder: Path) -> Path:
    """As much of a clone as the set-up looks at."""
    for name in NEEDED:
        (folder / "packaging" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "packaging" / name, folder / "packaging" / name)
    (folder / "pyproject.toml").touch()
    return folder


def checksum(path: Path) -> str:
    """A file's checksum as the set-up writes it into a stamp."""
    said = subprocess.run(["cksum"], input=path.read_bytes(), capture_output=True, check=True)
    return said.stdout.decode().strip().replace(" ", "-")


@pytest.fixture
def first(tmp_path: Path) -> Path:
    """A clone with an environment whose Python fails, so that nothing can be installed with it."""
    clone = write_clone(tmp_path / "first")
    environment = clone / ".venv"
    for path in (environment / PTH, environment / "stamps" / "system-run", environment / "bin" / "python"):
        path.parent.mkdir(parents=True, exist_ok=True)
    (environment / PTH).write_text(f"{clone}\n", encoding="utf-8")
    stamp = checksum(clone / "packaging" / "system-packages.txt")
    (environment / "stamps" / "system-run").write_text(stamp, encoding="utf-8")
    for name in ("python", "sndr"):
        (environment / "bin" / name).write_text("#!/bin/sh\nexit 9\n", encoding="utf-8")
        (environment / "bin" / name).chmod(0o755)
    return clone


def set_up(clone: Path, folder: Path) -> str:
    """What the set-up says where Python is there and can install nothing."""
    python = folder / "python"
    python.write_text('#!/bin/sh\n[ "$1" = -c ]\n', encoding="utf-8")
    python.chmod(0o755)
    ended = subprocess.run(
        ["bash", str(clone / "packaging" / "setup.sh"), "run"],
        env={**os.environ, "SNDR_PYTHON": str(python), "SNDR_CACHE": str(folder / "cache")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return ended.stderr


def test_the_environment_of_another_clone_stays_as_it_is(first: Path, tmp_path: Path) -> None:
    second = write_clone(tmp_path / "second")
    (second / ".venv").symlink_to(first / ".venv")
    said = set_up(second, tmp_path)
    assert f"The environment is that of {first} and stays as it is." in said
    assert "Installing the Python packages" not in said


def test_a_clone_that_moved_makes_the_environment_its_own_again(first: Path, tmp_path: Path) -> None:
    kept = tmp_path / "environment"
    (first / ".venv").rename(kept)
    second = first.rename(tmp_path / "second")
    (second / ".venv").symlink_to(kept)
    said = set_up(second, tmp_path)
    assert "stays as it is" not in said
    assert "Installing the Python packages" in said
