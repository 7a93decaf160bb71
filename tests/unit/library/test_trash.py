"""The trash on real files: cut off half way, and asked for two things at once."""

import os
import threading
from pathlib import Path

import pytest

from engine_host.library.belongings import Belongings
from engine_host.library.trash import KEPT, Trash


class HostDied(BaseException):
    """Stands for the end of the process: nothing tidies up after it."""


def two(folder: Path) -> Belongings:
    folder.mkdir()
    paths = (folder / "one", folder / "two")
    for path in paths:
        path.write_text(path.name)
    return Belongings(paths, 6, folder)


@pytest.mark.parametrize("doing", ["throw", "restore"])
def test_of_a_model_that_was_half_moved_nothing_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, doing: str
) -> None:
    now = [1000.0]
    trash, what, real = Trash(tmp_path / "trash", lambda: now[0]), two(tmp_path / "models"), os.rename
    left = [1 if doing == "throw" else 3]

    def rename(source: str, target: str) -> None:
        if not left[0]:
            raise HostDied
        left[0] -= 1
        real(source, target)

    monkeypatch.setattr(os, "rename", rename)
    with pytest.raises(HostDied):
        trash.restore(trash.throw(what, "m", what.paths[0], "mine").id)
    monkeypatch.undo()
    now[0] += 2 * KEPT
    again = Trash(tmp_path / "trash", lambda: now[0])
    again.empty(all_of_it=False)
    (thrown,) = again.all()
    again.restore(thrown.id)
    assert [path.read_text() for path in what.paths] == ["one", "two"]


def test_it_is_emptied_after_a_move_and_not_within(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trash, what, real = Trash(tmp_path / "trash"), two(tmp_path / "models"), os.rename
    emptying = threading.Thread(target=lambda: trash.empty(all_of_it=True), name="empty")

    def rename(source: str, target: str) -> None:
        if emptying.ident is None:
            emptying.start()
            emptying.join(0.2)
        real(source, target)

    monkeypatch.setattr(os, "rename", rename)
    trash.throw(what, "m", what.paths[0], "mine")
    emptying.join()
    assert trash.all() == []
    assert not any(path.exists() for path in what.paths)
