"""`sndr diagnostics` shows what is in the report, and writes it where it is told to."""

import json
import stat
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
    code, out, _ = sndr("diagnostics", "--output", "x.zip", "--json")
    told = json.loads(out)
    assert told["file"] == str(here / "x.zip")
    with zipfile.ZipFile(here / "x.zip") as archive:
        sizes = {one.filename.partition("/")[2]: one.file_size for one in archive.infolist()}
    assert {one["name"]: one["size"] for one in told["files"]} == sizes
    code, out, _ = sndr("diagnostics", "--output", "x.zip", "--json")
    assert (code, json.loads(out)["error"]["reason"]) == (6, "conflict")


def test_what_it_does_stands_in_its_help(sndr: Sndr) -> None:
    said = " ".join(sndr("diagnostics", "--help")[1].split())
    for word in ("0600", "--json too", "ever written over", "current one", "sndr --host NAME"):
        assert word in said


def test_a_file_that_is_there_is_left_with_json_too(home: Path, sndr: Sndr) -> None:
    (target := home / "x.zip").write_text("mine", encoding="utf-8")
    assert sndr("diagnostics", "-o", str(target))[0] == 6
    assert target.read_text(encoding="utf-8") == "mine"
    code, _, err = sndr("diagnostics", "-o", str(home / "nowhere" / "x.zip"))
    assert (code != 0, "is no folder" in err, "Collecting" in err) == (True, True, False)
    told = json.loads(sndr("diagnostics", "-o", str(home), "--json")[1])
    assert Path(told["file"]).parent == home
    assert stat.S_IMODE(Path(told["file"]).stat().st_mode) == 0o600


def test_what_makes_no_sense_is_refused(sndr: Sndr) -> None:
    assert sndr("diagnostics", "--preview", "--output", "x.zip")[0] == 2
    code, _, err = sndr("diagnostics", "--host", "attic")
    assert code == 2
    assert "sndr --host attic diagnostics" in err


def test_a_report_of_a_host_that_is_not_reached_is_none(home: Path, sndr: Sndr) -> None:
    code, out, _ = sndr("--host", "attic", "diagnostics", "-o", str(home / "x.zip"), "--json")
    assert (code, json.loads(out)["error"]["reason"]) == (3, "host_unreachable")
    assert not (home / "x.zip").exists()
