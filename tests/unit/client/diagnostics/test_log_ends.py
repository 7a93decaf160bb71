"""Of each log the end alone is read, whatever lies in its place."""

import os
from pathlib import Path

import pytest

from engine_host.client.diagnostics import log_ends
from engine_host.client.diagnostics.log_ends import MOST, end_of_log, log_files
from engine_host.core.paths import Folders
from tests.hostile.effort import peak_memory


def test_of_a_log_of_a_gibibyte_the_end_is_read(tmp_path: Path) -> None:
    path = tmp_path / "host.log"
    with path.open("wb") as file:
        # It takes no room on the disk: what is skipped is a hole.
        file.truncate(1 << 30)
        file.seek(0, os.SEEK_END)
        file.write(b"\nlast but one\nlast\n")
    assert end_of_log(path).endswith("bytes before this are left out]\nlast but one\nlast\n")
    assert peak_memory(lambda: end_of_log(path)) < 8 * MOST


def test_a_line_that_begins_before_the_end_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "host.log"
    path.write_bytes(b"x" * 100 + b" sk-" + b"a" * (MOST - 10) + b"\nwhole\n")
    assert end_of_log(path).splitlines()[1:] == ["whole"]
    path.write_bytes(b"a" * (MOST + 5))
    assert end_of_log(path) == f"[one line of more than {MOST:,} bytes is left out]\n"


def test_what_was_put_aside_comes_before(tmp_path: Path) -> None:
    path = tmp_path / "engine-1.log"
    path.write_text("second\n", encoding="utf-8")
    (tmp_path / "engine-1.log.1").write_bytes(b"\xff first\n")
    assert end_of_log(path) == "\N{REPLACEMENT CHARACTER} first\nsecond\n"


def test_a_pipe_a_folder_and_a_loop_are_no_logs(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.log")
    (tmp_path / "b.log").mkdir()
    (tmp_path / "c.log").symlink_to("c.log")
    for name in ("a", "b", "c", "missing"):
        with pytest.raises(OSError, match=r"regular|levels|No such"):
            end_of_log(tmp_path / f"{name}.log")


def test_the_newest_logs_are_taken(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = Folders.resolve()
    assert list(log_files(folders)) == []
    monkeypatch.setattr(log_ends, "_ENGINES", 2)
    (folders.logs / "engines").mkdir(parents=True)
    (folders.cache / "logs").mkdir(parents=True)
    for number in range(3):
        path = folders.logs / "engines" / f"engine-{number}.log"
        path.touch()
        os.utime(path, (number, number))
    for path in (
        folders.logs / "host.log",
        folders.logs / "install-vllm-x.log",
        folders.cache / "logs" / "llama.cpp-k.log",
        folders.logs / "engines" / "engine-2.log.1",
    ):
        path.touch()
    assert [name for name, _ in log_files(folders)] == [
        "logs/host.log",
        "logs/engines/engine-2.log",
        "logs/engines/engine-1.log",
        "logs/install-vllm-x.log",
        "logs/builds/llama.cpp-k.log",
    ]
