"""`sndr diagnostics` shows what is in the report, and writes it where it is told to."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from engine_host.core.paths import Folders
from tests.hostile.effort import control_characters

Sndr = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def log(home: Path) -> None:
    """A log that steers the terminal of whoever shows it."""
    folders = Folders.resolve()
    folders.logs.mkdir(parents=True)
    (folders.logs / "host.log").write_bytes(b"\x1b[2J\x1b]0;x\x07kept sk-hunter22hunter22\x9b2J\xff\n")


def test_the_preview_shows_every_file_and_writes_none(
    home: Path, sndr: Sndr, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here := home / "here").mkdir()
    monkeypatch.chdir(here)
    code, out, err = sndr("diagnostics", "--preview")
    assert (code, err) == (0, "Collecting…\n")
    assert "===== logs/host.log (" in out
    assert "kept [redacted]" in out
    assert "missing: telemetry.jsonl: " in out
    assert control_characters(out) == set()
    assert list(here.iterdir()) == []
    code, out, _ = sndr("diagnostics", "--preview", "--json")
    told = json.loads(out)
    assert {one["name"] for one in told["files"]} > {"README.txt", "versions.json", "logs/host.log"}
    assert all(one["size"] == len(one["text"].encode()) for one in told["files"])


def test_the_zip_is_written_here_or_where_it_is_told_to(
    home: Path, sndr: Sndr, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here := home / "here").mkdir()
    monkeypatch.chdir(here)
    code, out, _ = sndr("diagnostics")
    (written,) = here.iterdir()
    assert code == 0
    assert f"Written to {written}" in out
    code, out, _ = sndr("diagnostics", "--to", "x.zip", "--json")
    told = json.loads(out)
    assert told["file"] == str(here / "x.zip")
    with zipfile.ZipFile(here / "x.zip") as archive:
        sizes = {one.filename.partition("/")[2]: one.file_size for one in archive.infolist()}
    assert {one["name"]: one["size"] for one in told["files"]} == sizes
    code, out, _ = sndr("diagnostics", "--to", "x.zip", "--json")
    assert (code, json.loads(out)["error"]["reason"]) == (6, "conflict")


def test_what_makes_no_sense_is_refused(sndr: Sndr) -> None:
    assert sndr("diagnostics", "--preview", "--to", "x.zip")[0] == 2
    code, _, err = sndr("--host", "attic", "diagnostics")
    assert code == 2
    assert "sndr host shell" in err
