"""The small parts of the window that know no widgets."""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtTest import QAbstractItemModelTester
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from engine_host.client import Folders
from engine_host.core.sse import SseMessage, async_messages
from sndr_gui.host.notices import Notice, Notices
from sndr_gui.host.process import HostProcess, HostStartFailed
from sndr_gui.host.tasks import Tasks
from sndr_gui.kit import formats, versions
from sndr_gui.kit.look.choices import ThemeChoice
from sndr_gui.kit.resources import resource
from sndr_gui.kit.rows import Column, RowsModel
from sndr_gui.kit.settings import SettingsFile, WindowSettings
from sndr_gui.kit.versions import refusal, refusal_here


def test_backticks_are_for_terminals() -> None:
    assert formats.strip_backticks("Run `sndr engine build` first.") == "Run sndr engine build first."


def test_versions_that_end_the_process_are_refused_in_a_sentence() -> None:
    sentence = refusal((3, 11, 7), (6, 12, 0))
    assert sentence is not None
    assert "6.11.3" in sentence
    assert refusal((3, 11, 7), (6, 11, 3)) is None
    assert refusal((3, 12, 0), (6, 12, 0)) is None
    assert refusal_here() is None


def test_the_version_of_qt_is_read_without_importing_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = tmp_path / "PySide6" / "__init__.py"
    package.parent.mkdir()
    package.write_text('raise AssertionError\n__version_info__ = (6, 12, 0, "", "")\n')
    monkeypatch.delitem(sys.modules, "PySide6")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "version_info", (3, 11, 7))
    assert "6.12.0" in str(refusal_here())


def test_the_version_of_qt_in_an_archive_is_asked_of_qt(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compiled = tmp_path / "__init__.pyc"
    for kept in (compiled, tmp_path / "none" / "__init__.pyc"):
        compiled.write_bytes(b"\xcb\x0d\x0d\x0a\xff")
        monkeypatch.setattr(versions, "find_spec", lambda _name, kept=kept: SimpleNamespace(origin=str(kept)))
        monkeypatch.setattr(sys, "version_info", (3, 11, 7))
        assert refusal_here() is None


def test_an_installation_without_the_window_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PySide6", None)
    assert "sndr-control-center[window]" in str(refusal_here())


class _Source(QObject):
    happened = Signal(bool)


def test_signals_and_updates_do_not_wear_the_interpreter_out(qtbot: QtBot) -> None:
    """PySide6 6.12 on Python 3.11 aborts in here."""
    source = _Source()
    seen: list[bool] = []
    source.happened.connect(seen.append)
    for _ in range(2_000):
        source.happened.emit(True)
    widget = QWidget()
    qtbot.addWidget(widget)
    for _ in range(10_000):
        widget.update()
    assert len(seen) == 2_000


def test_resources_are_here() -> None:
    for name in ("icons/sndr.svg", "fonts/Inter-Regular.otf", "fonts/LICENSE-Inter", "icons/LICENSE-lucide"):
        assert resource(*name.split("/")).is_file()


def test_settings_survive_and_damage_is_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "config" / "window.json"
    file = SettingsFile(path)
    assert file.current == WindowSettings()
    file.write(WindowSettings(theme=ThemeChoice.DARK, page="chat"))
    assert SettingsFile(path).current.theme is ThemeChoice.DARK
    path.write_text(json.dumps({"theme": "dark", "from_a_newer_window": 1}))
    assert SettingsFile(path).current.theme is ThemeChoice.DARK
    for damage in (
        "",
        "{",
        "[]",
        '{"theme": "pink"}',
        '{"accent": 5}',
        '{"scale": 300}',
        '{"scale": [100]}',
        '{"page": 5}',
        '{"sidebar_folded": "yes"}',
    ):
        path.write_text(damage)
        again = SettingsFile(path)
        assert again.current == WindowSettings()
        assert again.damage is not None
        again.write(WindowSettings(page="chat"))
        assert again.current.page == "chat", "until the window ends"
        assert path.read_text() == damage, "nothing is overwritten unasked"
    assert [entry.name for entry in path.parent.iterdir()] == ["window.json"]


def test_damaged_settings_are_told_by_line_and_repaired_entry_by_entry(tmp_path: Path) -> None:
    path = tmp_path / "window.json"
    path.write_text('{\n  "theme": "dark",\n  "scale": 300,\n  "page": "chat"\n}')
    file = SettingsFile(path)
    assert file.damage is not None
    assert (file.damage.line, "scale" in file.damage.what) == (3, True)
    assert file.damage.kept == WindowSettings(theme=ThemeChoice.DARK, page="chat")
    aside = file.set_aside(repair=True)
    assert '"scale": 300' in aside.read_text()
    assert SettingsFile(path).current == file.current == WindowSettings(theme=ThemeChoice.DARK, page="chat")
    path.write_text('{\n  "theme": "dark"\n  "page"')
    file = SettingsFile(path)
    assert file.damage is not None
    assert (file.damage.line, file.damage.kept) == (3, None)
    file.write(WindowSettings(page="logs"))
    file.set_aside()
    assert SettingsFile(path).current.page == "logs"
    assert SettingsFile(path).damage is None


def test_numbers_read_well_and_unknown_is_never_zero() -> None:
    assert formats.size(None) == formats.rate(None) == formats.count(None) == formats.UNMEASURED
    assert formats.percent(None) == formats.percent(1, 0) == formats.used_of(None, 5) == formats.UNMEASURED
    assert formats.size(21.4 * 2**30) == "21.4 GiB"
    assert formats.used_of(21.4 * 2**30, 24 * 2**30) == "21.4 / 24 GiB"
    assert formats.rate(142.6) == "142.6 tok/s"
    assert formats.rate(4743.6) == "4,744 tok/s"
    assert formats.rate(999.96) == "1,000 tok/s"
    assert formats.plural(1200, "request") == "1,200 requests"
    assert formats.percent(0.63) == "63 %"
    assert [formats.count(n) for n in (512, 8192, 32768, 11_500_000, 35e9)] == [
        "512",
        "8,192",
        "32.8k",
        "11.5M",
        "35B",
    ]
    shown = [formats.duration(seconds) for seconds in (0.84, 4.24, 185, 11520, 100_000)]
    assert shown == ["840 ms", "4.2 s", "3 min 5 s", "3 h 12 min", "1 d 3 h"]
    assert formats.plural(1, "request") == "1 request"


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=0, max_value=1e18))
def test_any_number_has_a_text(value: float) -> None:
    for shown in (formats.size(value), formats.rate(value), formats.count(value), formats.duration(value)):
        assert shown
        assert shown != formats.UNMEASURED


def test_sse_messages_comments_and_numbers() -> None:
    lines = [": waiting, 3 ahead", "", "id: 7", "data: {", "data: }", "", "event: x", "", "data: last", ""]

    async def read() -> list[SseMessage]:
        async def source() -> AsyncIterator[bytes]:
            for line in lines:
                yield f"{line}\n".encode()

        return [message async for message in async_messages(source())]

    assert asyncio.run(read()) == [
        SseMessage(comment="waiting, 3 ahead"),
        SseMessage("{\n}", "7"),
        SseMessage("last", "7"),
    ]


def test_rows_filter_sort_and_keep_the_model_rules(qtbot: QtBot) -> None:
    columns: list[Column[tuple[str, int]]] = [
        Column("Name", lambda row: row[0]),
        Column("Number", lambda row: str(row[1]), lambda row: row[1], right=True),
    ]
    model: RowsModel[tuple[str, int]] = RowsModel(columns, lambda row: row[0])
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    model.set_rows([("a", 10), ("b", 9), ("c", 100)])
    model.sort(1)
    assert [row[1] for row in model.shown] == [9, 10, 100]
    model.sort(1, Qt.SortOrder.DescendingOrder)
    model.set_filter("1")
    assert [row[0] for row in model.shown] == ["c", "a"]
    model.set_rows([("d", 1), ("e", 2)])
    assert [row[0] for row in model.shown] == ["d"]
    model.sort(-1)
    assert model.row_at(5) is None
    assert tester is not None


def test_tasks_report_once_and_end_together() -> None:
    async def work() -> list[BaseException]:
        seen: list[BaseException] = []
        tasks = Tasks(seen.append)

        async def fails() -> None:
            raise ValueError("x")

        tasks.start(fails(), "fails")
        long = tasks.start(asyncio.sleep(60), "long")
        await asyncio.sleep(0.01)
        await tasks.close()
        assert long.cancelled()
        begun: list[str] = []

        async def late() -> None:
            begun.append("late")

        assert tasks.start(late(), "late").cancelled()
        await asyncio.sleep(0.01)
        assert not begun, "nothing begins in a window that is gone"
        return seen

    assert [str(error) for error in asyncio.run(work())] == ["x"]


def test_notices_carry_what_to_do(qtbot: QtBot) -> None:
    notices = Notices()
    seen: list[Notice] = []
    notices.posted.connect(seen.append)
    notices.warning("key", "Text.", action_text="Do", action=print)
    assert seen == [Notice("key", "warning", "Text.", "Do", print)]


def test_settings_that_are_kept_elsewhere_are_changed_there(tmp_path: Path) -> None:
    path, kept = tmp_path / "window.json", tmp_path / "dotfiles.json"
    kept.write_text("{}")
    path.symlink_to(kept)
    SettingsFile(path).write(WindowSettings(theme=ThemeChoice.DARK))
    assert path.is_symlink()
    assert json.loads(kept.read_text())["theme"] == "dark"


# The process of the host.


@pytest.mark.parametrize("shared", [True, False])
def test_run_folder_that_others_may_enter_is_not_talked_to(home: Path, shared: bool) -> None:
    folders = Folders.resolve({"SNDR_HOME": str(home)})
    folders.run.mkdir(mode=0o700)
    folders.token.write_text("planted", encoding="utf-8")
    if shared:
        folders.run.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folders.socket))
        listener.listen()
        listener.setblocking(False)
        host = HostProcess(folders, ["/bin/false"])
        if shared:
            with pytest.raises(HostStartFailed, match="can be entered by others"):
                asyncio.run(host.find_or_start())
            with pytest.raises(BlockingIOError):
                listener.accept()
        else:
            assert asyncio.run(host.find_or_start()).token == "planted"
    folders.socket.unlink()
