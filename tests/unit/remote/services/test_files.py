"""The files of a service: written beside and renamed, kept, brought back, removed."""

import ast
import errno
import hashlib
import shutil
from pathlib import Path
from typing import Any

import pytest

from engine_host.remote.install.there.places import Failed
from engine_host.remote.services import there
from engine_host.remote.services.machine import STEPS
from engine_host.remote.services.there import running
from engine_host.remote.services.there.files import (
    Folders,
    changed,
    compared,
    leaving_files,
    put_files,
    remove_files,
    settle_files,
    undo_files,
)
from engine_host.remote.services.there.reading import _stamped, _text


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own."""
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def file(name: str, text: str, place: str = "folder", **more: Any) -> dict[str, Any]:
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    return {"name": name, "text": text, "place": place, "sha256": sha256, **more}


def put(folders: Folders, files: list[dict[str, Any]]) -> dict[str, Any]:
    return put_files(folders, files, replace=False, running=False)


class Fails:
    """FAKE: fails in the place of something."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __call__(self, *_: object, **__: object) -> None:
        raise self.error


def everything(home: Path) -> dict[str, str]:
    return {
        str(path.relative_to(home)): path.read_text("utf-8") if path.is_file() else ""
        for path in sorted(home.rglob("*"))
    }


def test_a_first_install_is_undone_to_nothing(own: Path) -> None:
    folders = Folders("sndr-a")
    put_files(folders, [file("a.service", "x", "units"), file("start.sh", "y")], replace=False, running=False)
    assert (own / ".config/systemd/user/a.service").read_text("utf-8") == "x"
    assert undo_files(folders) == {"undone": True, "running": False, "first": True}
    assert everything(own) == {}
    assert undo_files(folders)["undone"] is False


def test_an_update_is_undone_to_what_was_there(own: Path) -> None:
    folders = Folders("sndr-a")
    first = [file("a.service", "1", "units"), file("old.sh", "o"), file("s.env", "", keep=True)]
    made = put_files(folders, first, replace=False, running=False)["made"]
    settle_files(folders, first, {"manager": "systemd"}, made)
    (own / ".local/share/sndr/deploy/sndr-a/s.env").write_text("KEY=1", encoding="utf-8")
    before = everything(own)
    second = [file("a.service", "2", "units"), file("new.sh", "n"), file("s.env", "", keep=True)]
    put_files(folders, second, replace=False, running=True)
    # Cut off, and begun once more: what ran before is still what comes back.
    put_files(folders, [file("a.service", "3", "units")], replace=True, running=False)
    assert undo_files(folders) == {"undone": True, "running": True, "first": False}
    assert everything(own) == before


def test_what_a_person_changed_is_kept_unless_that_is_said(own: Path) -> None:
    folders = Folders("sndr-a")
    files = [file("a.service", "1", "units")]
    settle_files(folders, files, {}, put_files(folders, files, replace=False, running=False)["made"])
    unit = own / ".config/systemd/user/a.service"
    unit.write_text("mine", encoding="utf-8")
    assert changed(folders) == [str(unit)]
    assert compared(folders, [file("a.service", "2", "units")])[0]["state"] == "by_hand"
    with pytest.raises(Failed, match="Somebody changed"):
        put_files(folders, [file("a.service", "2", "units")], replace=False, running=False)
    assert unit.read_text("utf-8") == "mine"


@pytest.mark.parametrize("how", ["full", "cut off"])
def test_a_disk_that_is_full_before_anything_was_written_ends_nothing(
    own: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    folders = Folders("sndr-a")
    files = [file("a.service", "1", "units")]
    settle_files(folders, files, {"manager": "systemd"}, put(folders, files)["made"])
    before = everything(own)
    # FAKE: the disk is full, or power is lost, at the first file that is kept.
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(shutil, "copy2", Fails(full if how == "full" else KeyboardInterrupt()))
    with pytest.raises(type(full) if how == "full" else KeyboardInterrupt):
        put(folders, [file("a.service", "2", "units"), file("deeper/b", "new")])
    ended: list[object] = []
    monkeypatch.setattr(running, "_end", lambda *which: ended.append(which))
    given = {"name": "sndr-a", "manager": "systemd"}
    assert running.undo(given) == {"undone": False, "running": False, "first": False}
    assert not ended, "the service that runs is not stopped"
    if how == "full":
        assert everything(own) == before
    assert not Path(folders.before).exists()


def test_a_first_install_that_fails_leaves_what_was_there(own: Path) -> None:
    folders = Folders("sndr-a")
    kept = own / ".local/share/sndr/deploy/sndr-a"
    kept.mkdir(parents=True)
    (kept / "secrets.env").write_text("KEY=1", encoding="utf-8")
    (kept / "start.sh").write_text("mine", encoding="utf-8")
    (own / ".cache/sndr/deploy/sndr-a").mkdir(parents=True)
    (own / ".cache/sndr/deploy/sndr-a/compiled").write_text("of hours", encoding="utf-8")
    before = everything(own)
    files = [file("start.sh", "ours"), file("secrets.env", "", keep=True), file("a.service", "1", "units")]
    put_files(folders, files, replace=True, running=False)
    assert undo_files(folders) == {"undone": True, "running": False, "first": False}
    assert everything(own) == before


def test_what_was_cut_off_is_no_change_of_a_person(own: Path) -> None:
    folders = Folders("sndr-a")
    put(folders, [file("a.service", "1", "units"), file("gone.sh", "1")])
    assert compared(folders, [file("a.service", "2", "units")])[0]["state"] == "changed"
    made = put(folders, [file("a.service", "2", "units")])["made"]
    settle_files(folders, [file("a.service", "2", "units")], {}, made)
    assert not (own / ".local/share/sndr/deploy/sndr-a/gone.sh").exists()
    put(folders, [file("a.service", "3", "units"), file("new.timer", "3", "units")])
    assert changed(folders) == []
    remove_files(folders)
    assert everything(own) == {}


def test_a_removal_leaves_nothing(own: Path) -> None:
    (own / ".config").mkdir()
    folders = Folders("sndr-a")
    files = [file("a.service", "1", "units"), file("overlay/p/x.py", "y")]
    settle_files(folders, files, {}, put_files(folders, files, replace=False, running=False)["made"])
    assert str(own / ".config/systemd/user/a.service") in leaving_files(folders)
    remove_files(folders)
    assert everything(own) == {".config": ""}


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "a\0b", ".hidden", "a\\b"])
def test_a_name_is_no_path(own: Path, name: str) -> None:
    with pytest.raises(Failed):
        Folders(name)


@pytest.mark.parametrize("name", ["", "../x", "a/../../x", "/etc/passwd", "a//b", "a\0b"])
def test_a_file_stays_in_its_folder(own: Path, name: str) -> None:
    with pytest.raises(Failed):
        Folders("sndr-a").path("folder", name)


def test_lines_have_the_time_of_either_tool() -> None:
    docker = _stamped("2026-11-23T09:11:43.5Z ready")
    assert docker == _stamped("2026-11-23T10:11:43.500000000+01:00 stdout F ready")
    assert docker[1] == "ready"
    assert _stamped("no time") == (None, "no time")
    assert _stamped("2026-99-99T99:99:99Z x")[0] is None


def test_a_message_of_the_journal_may_be_bytes() -> None:
    assert _text([104, 105, 255]) == "hi\N{REPLACEMENT CHARACTER}"
    assert _text(None)
    assert _text("plain") == "plain"


def test_what_runs_there_is_for_older_pythons_too() -> None:
    folder = Path(str(there.__file__)).parent
    sent = {f"{name.rpartition('.')[2]}.py" for name in STEPS.modules if name.startswith(there.__name__)}
    assert sent == {path.name for path in folder.glob("*.py")} - {"__init__.py"}
    for path in folder.glob("*.py"):
        ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
