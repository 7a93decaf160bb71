"""Whether a release on another machine is whole."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from engine_host.remote.install.there.places import Places
from engine_host.remote.install.there.wholeness import damage, damaged, note_files


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """FAKE: a release whose program says nothing, and the link that leads to it."""
    monkeypatch.setenv("SNDR_HOME", str(tmp_path))
    made = tmp_path / "data" / "host" / "one"
    (made / "bin").mkdir(parents=True)
    (made / "lib" / "__pycache__").mkdir(parents=True)
    (made / "lib" / "part.py").write_text("part = 1", encoding="utf-8")
    (made / "lib" / "__pycache__" / "part.pyc").write_bytes(b"compiled")
    (made / "bin" / "python").write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    (made / "bin" / "python").chmod(0o755)
    (made / "complete.json").write_text("{}", encoding="utf-8")
    note_files(made.as_posix())
    (made.parent / "current").symlink_to("one")
    return made


def lose_file(release: Path) -> None:
    (release / "lib" / "part.py").unlink()


def change_file(release: Path) -> None:
    (release / "lib" / "part.py").write_text("", encoding="utf-8")


def lose_python(release: Path) -> None:
    note = release / "files.json"
    left = {name: size for name, size in json.loads(note.read_text())["files"].items() if "bin" not in name}
    note.write_text(json.dumps({"files": left}), encoding="utf-8")
    (release / "bin" / "python").unlink()
    (release / "bin" / "python").symlink_to("/nonexistent/python3.11")


def upgrade_python(release: Path) -> None:
    lose_python(release)
    (release / "bin" / "python").unlink()
    (release / "bin" / "python").symlink_to(sys.executable)


def lose_folder(release: Path) -> None:
    release.rename(release.with_name("elsewhere"))


def lose_end(release: Path) -> None:
    (release / "complete.json").unlink()


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (lose_file, "lib/part.py is missing"),
        (change_file, "lib/part.py was changed"),
        (lose_python, "its Python, /nonexistent/python3.11, is missing or may not be run"),
        (upgrade_python, "No module named"),
        (lose_folder, "its folder is missing"),
        (lose_end, "complete.json is missing"),
    ],
)
def test_what_is_wrong_with_a_release_is_said(
    release: Path, harm: Callable[[Path], None], why: str, tmp_path: Path
) -> None:
    assert damage(str(release)) is None
    (release / "lib" / "__pycache__" / "part.pyc").unlink()
    assert damaged(Places()) == {}, "compiled files come and go"
    harm(release)
    assert why in damaged(Places())["one"]


def test_a_release_of_a_version_that_noted_no_files_is_asked_alone(release: Path) -> None:
    (release / "files.json").unlink()
    (release / "lib" / "part.py").unlink()
    assert damage(str(release)) is None
    (release / "bin" / "python").write_text("#!/bin/sh\necho no such part >&2\nexit 1\n", encoding="utf-8")
    assert damage(str(release)) == "it does not run (no such part)"
