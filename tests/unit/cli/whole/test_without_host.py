"""Every command where no host runs and none can be started: said with the next action and a known code."""

import errno
import io
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine_host.cli.output import MEANINGS, Exit
from engine_host.cli.start import host as starting
from engine_host.core.errors import HostError
from engine_host.core.paths import Folders
from engine_host.protocol.errors import Fix, Reason
from tests.unit.cli.whole.every_command import DOING, examples_of, make_files, typed
from tests.unit.full_disk import small_disk

Sndr = Callable[..., tuple[int, str, str]]
# Those that start another process than a host, which no unit test may; the lab's read the disk by one, and
# what a model needs is asked of llama.cpp's server.
OWN_PROCESS = {
    *("autostart host", "bench baseline", "bench check", "bench compare", "bench list", "bench remove"),
    *("bench repair", "bench report", "bench reproduce", "bench sweeps", "fit", "open", "presets verdicts"),
    "serve",
}
ROWS = tuple((words, typed(examples_of(one)[0])) for words, one in DOING if words not in OWN_PROCESS)
# What needs no host: files of this machine, and records of the last one.
WITHOUT = {
    *("autopsy", "autostart show", "bench kernels", "connect", "diagnostics", "doctor", "version"),
    *("chats export", "chats list", "chats remove", "chats rename"),
    *("keys create", "keys list", "keys revoke"),
    "quit",
    *("settings check", "settings get", "settings repair", "settings set", "settings set-aside"),
    *("settings unset", "telemetry check", "telemetry play", "telemetry stop"),
    # Made in this process.
    *("models", "models list", "patches check", "patches list", "patches show"),
    *("presets export", "presets hardware", "presets lint", "presets list", "presets resolve"),
    "presets show",
}

# A host alone would not help them.
NEED_A_MODEL = {"bench profile", "bench soak", "bench verify", "chat"}
# What they find is their result, and no error.
CHECKS = (["settings", "check"], ["presets", "lint"])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder with the files that examples name."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    return place


def told(sndr: Sndr, folder: Path, given: list[str]) -> tuple[int, str]:
    """Run a command for people and for programs; its exit code, and what people are told."""
    make_files([one for one in given if not one.startswith("request")], folder)
    code, out, err = sndr(*given)
    assert code in set(MEANINGS), err
    assert "Traceback" not in out + err
    if code != Exit.OK and given[:2] not in CHECKS:
        assert err.count("Error: ") == 1, (given, err)
        assert "What to do: " in err, (given, err)
    again, out, other = sndr(*given, "--json")
    # What was made the first time is there already.
    assert again == code or code == Exit.OK, given
    assert other == "", given
    lines = [json.loads(line) for line in out.splitlines()]
    if again != Exit.OK and given[:2] not in CHECKS:
        assert lines[-1]["error"]["fix"], given
    return code, err


@pytest.fixture
def no_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no host be started."""

    def refuse(folders: Folders, daemon: bool) -> None:
        raise HostError(
            Reason.HOST_UNREACHABLE, "No host here.", fix=Fix(text="Start it.", command="sndr serve")
        )

    monkeypatch.setattr(starting, "_find_or_start", refuse)


@pytest.mark.usefixtures("no_start")
@pytest.mark.parametrize(("words", "given"), ROWS, ids=[words for words, _ in ROWS])
def test_without_a_host_it_says_what_to_do(words: str, given: list[str], sndr: Sndr, folder: Path) -> None:
    code, err = told(sndr, folder, given)
    if words not in WITHOUT:
        assert code == Exit.NO_HOST
        starts = "sndr run --demo --detach" if words in NEED_A_MODEL else "sndr serve"
        assert starts in err or "sndr host connect" in err


@pytest.mark.parametrize(
    "refusal", [BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), OSError(errno.EMFILE, "x")]
)
def test_a_system_that_starts_no_process_is_told_of(
    refusal: OSError, sndr: Sndr, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise refusal

    monkeypatch.setattr(subprocess, "Popen", refuse)
    code, err = told(sndr, folder, ["engine", "list"])
    assert code == Exit.FAILED
    assert f"The system refuses what this needs: {refusal.strerror}." in err


@pytest.mark.usefixtures("no_start")
@pytest.mark.parametrize(("words", "given"), ROWS, ids=[words for words, _ in ROWS])
def test_a_home_that_nothing_can_be_written_to_is_told_of(
    words: str, given: list[str], sndr: Sndr, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below a file no folder can be made, whoever asks: it is as a disk that is read-only."""
    (folder / "file").touch()
    monkeypatch.setenv("SNDR_HOME", str(folder / "file" / "home"))
    monkeypatch.setenv("HOME", str(folder / "file"))
    told(sndr, folder, given)


@pytest.fixture(scope="module")
def full_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder on a disk that is full."""
    with small_disk(tmp_path_factory.mktemp("disks") / "full") as disk:
        if not disk.real:
            pytest.skip("only root may mount a small disk")
        with disk.full():
            yield disk.folder


@pytest.mark.usefixtures("no_start")
@pytest.mark.parametrize(("words", "given"), ROWS, ids=[words for words, _ in ROWS])
def test_a_full_disk_is_told_of(
    words: str, given: list[str], sndr: Sndr, folder: Path, full_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNDR_HOME", str(full_disk / "home"))
    monkeypatch.setenv("HOME", str(full_disk))
    code, err = told(sndr, folder, given)
    if words in {"keys create", "settings set"}:
        assert code == Exit.SYSTEM
        assert "The disk is full" in err
