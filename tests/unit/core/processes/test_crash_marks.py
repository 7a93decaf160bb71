"""Marks of programs that run: an end in order leaves none, whatever else is told once with its trace."""

import json
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.core.processes import crash_marks
from engine_host.core.processes.crash_marks import CrashMark, marked, reports, take_crashes
from engine_host.protocol.errors import Reason

REFUSED = HostError(Reason.INTERNAL, "It was refused.")


def names(folder: Path) -> list[str]:
    return sorted(path.suffix for path in folder.iterdir())


def test_an_end_in_order_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "crashes"
    with marked(folder, "window", "1") as mark:
        assert mark is not None
        assert names(folder) == [".mark", ".trace"]
        assert take_crashes(folder) == (), "it runs"
    with pytest.raises(HostError), marked(folder, "host", "1", (HostError,)):
        raise REFUSED
    with pytest.raises(KeyboardInterrupt), marked(folder, "host", "1"):
        raise KeyboardInterrupt
    assert names(folder) == []


def test_an_error_is_told_once_with_its_trace(tmp_path: Path) -> None:
    def crash() -> None:
        with marked(tmp_path, "window", "1.2") as mark:
            assert mark is not None
            mark.note(ValueError("of a task"))
            raise ZeroDivisionError("the last straw")

    with pytest.raises(ZeroDivisionError):
        crash()
    assert [name for name, _ in reports(tmp_path)], "also before anybody was told"
    (found,) = take_crashes(tmp_path)
    said = found.report.read_text(encoding="utf-8")
    assert (found.program, found.traced) == ("window", True)
    assert "The window of sndr 1.2" in said
    assert said.index("of a task") < said.index("the last straw")
    assert found.report.stat().st_mode & 0o777 == 0o600
    assert take_crashes(tmp_path) == ()
    assert [text for _, text in reports(tmp_path)] == [said]


@pytest.mark.parametrize(("boot", "told"), [("this", True), ("another", False)])
def test_a_killed_one_is_told_unless_the_machine_was_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, boot: str, told: bool
) -> None:
    (tmp_path / "boot").write_text("this\n", encoding="ascii")
    monkeypatch.setattr(crash_marks, "_BOOT", tmp_path / "boot")
    monkeypatch.setenv("XDG_SESSION_ID", "7")
    CrashMark(tmp_path, "host", "1").leave()
    (mark,) = tmp_path.glob("*.mark")
    mark.write_text(json.dumps({**json.loads(mark.read_text()), "boot": boot}), encoding="utf-8")
    found = take_crashes(tmp_path)
    assert [one.traced for one in found] == ([False] if told else [])
    assert not list(tmp_path.glob("*.mark"))
    if told:
        assert "It left no trace" in found[0].report.read_text(encoding="utf-8")


def test_damaged_marks_and_full_folders_stop_nothing(tmp_path: Path) -> None:
    for content in (b"", b"\xff", b"[[", b"{}", b'{"program": 3, "at": "x"}'):
        (tmp_path / f"window-{len(content)}.mark").write_bytes(content)
    (tmp_path / "loop.mark").symlink_to(tmp_path / "loop.mark")
    assert isinstance(take_crashes(tmp_path), tuple)
    assert take_crashes(tmp_path / "nowhere") == ()
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with marked(tmp_path / "file" / "crashes", "host", "1") as mark:
        assert mark is None
    for number in range(30):
        (tmp_path / f"host-{number}.txt").write_text("old", encoding="utf-8")
    with marked(tmp_path, "host", "1"):
        assert len(list(tmp_path.glob("*.txt"))) <= 10
