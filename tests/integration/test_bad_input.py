"""What people get wrong and machines refuse: one clear message each, and nothing lost."""

import contextlib
import json
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine_host.bench.random_model import TINY, write_random_model
from engine_host.core.paths import Folders
from engine_host.protocol.operations import table as ops
from engine_host.protocol.settings import SettingsChange
from tests.integration.host_process import SNDR, Ended, serving, sndr, started
from tests.waiting import wait_until

SETTINGS = "[endpoint]\nport = 8123\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small sound GGUF."""
    return write_random_model(tmp_path_factory.mktemp("model") / "sound.gguf", TINY)


def assert_clear(ended: Ended, code: int, reason: str, *words: str) -> None:
    """The message says what, why or what to do, is no traceback, and has its exit code."""
    problem = ended.problem()
    assert (ended.code, problem["reason"]) == (code, reason), problem
    assert "Traceback" not in ended.out + ended.err
    text = " ".join((problem["message"], problem["cause"], (problem["fix"] or {}).get("text", "")))
    for word in words:
        assert word in text
    assert problem["fix"], problem
    assert len(problem["message"]) < 400


def test_missing_model_file(home: Path) -> None:
    ended = sndr("run", str(home / "nothing.gguf"), "--json")
    assert_clear(ended, 4, "model_file_missing", "nothing.gguf")


def test_unknown_model_name() -> None:
    assert_clear(sndr("run", "no-such-model", "--json"), 4, "model_file_missing", "no-such-model")


def test_a_detached_start_that_fails_leaves_no_host(home: Path) -> None:
    ended = sndr("run", str(home / "nothing.gguf"), "--detach", "--json")
    assert_clear(ended, 4, "model_file_missing", "nothing.gguf")
    assert "has ended again" in ended.problem()["evidence"]["note"]
    assert wait_until(lambda: sndr("status").code == 3)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.999])
def test_truncated_gguf(home: Path, model: Path, share: float) -> None:
    path = home / "cut.gguf"
    content = model.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    ended = sndr("run", str(path), "--json")
    assert_clear(ended, 5, "gguf_truncated", "cut.gguf")


@pytest.mark.parametrize(
    "content", [b"", b"GG", b"Not a model at all.", bytes(4096)], ids=["empty", "2", "text", "zeros"]
)
def test_not_a_gguf(home: Path, content: bytes) -> None:
    path = home / "other.gguf"
    path.write_bytes(content)
    ended = sndr("run", str(path), "--json")
    assert ended.code == 5, ended
    assert ended.problem()["reason"] in {"not_gguf", "gguf_truncated"}
    assert "other.gguf" in ended.problem()["message"]


def test_folder_instead_of_a_model(home: Path) -> None:
    ended = sndr("run", f"{home}/", "--json")
    assert ended.code in {4, 5}
    assert "Traceback" not in ended.err


def test_port_in_use_moves_on_and_says_so() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with serving("--port", str(port)) as client:
            status = sndr("status", "--json")
            endpoint = json.loads(status.out)["host"]["endpoint"]
            assert endpoint["wanted_port"] == port
            assert endpoint["port"] != port
            assert f"port {port} was taken" in sndr("status").out
            assert client.version is not None


def test_endpoint_for_the_network_needs_a_key() -> None:
    assert_clear(sndr("serve", "--host", "0.0.0.0", "--json"), 2, "setting_invalid", "0.0.0.0", "key")


def test_run_folder_that_others_may_enter(home: Path) -> None:
    (home / "run").mkdir(mode=0o755)
    os.chmod(home / "run", 0o755)
    assert_clear(sndr("serve", "--json"), 7, "run_folder_unsafe", "0755")


def test_run_folder_that_is_a_link(home: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    (home / "run").symlink_to(tmp_path)
    assert_clear(sndr("serve", "--json"), 7, "run_folder_unsafe")


def test_second_instance_names_the_first() -> None:
    with serving() as client:
        ended = sndr("serve", "--json")
        assert_clear(ended, 6, "second_instance", "pid")
        # The first one is as it was.
        assert client.call(ops.SETTINGS).settings


def test_home_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    ended = sndr("serve", "--json", SNDR_HOME=str(tmp_path / "file" / "home"))
    assert_clear(ended, 7, "not_writable", "SNDR_HOME")


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_home_that_is_not_writable(home: Path) -> None:
    home.chmod(0o500)
    assert_clear(sndr("serve", "--json"), 7, "not_writable")


def test_settings_that_are_not_toml_stop_nothing(home: Path) -> None:
    file = home / "config" / "settings.toml"
    file.parent.mkdir()
    file.write_text("[endpoint\nport = 1", encoding="utf-8")
    with serving() as client:
        page = client.call(ops.SETTINGS)
        assert page.problem is not None
        assert page.problem.evidence["line"] == 1
    assert file.read_text(encoding="utf-8") == "[endpoint\nport = 1"


def test_disk_full_while_saving_settings_keeps_the_old_ones(home: Path) -> None:
    file = home / "config" / "settings.toml"
    file.parent.mkdir()
    file.write_text(SETTINGS, encoding="utf-8")
    ended = sndr("settings", "set", "models.folders", json.dumps(["/x" * 500]), "--json", file_limit=512)
    assert_clear(ended, 7, "disk_full", "settings.toml", "unchanged")
    assert file.read_text(encoding="utf-8") == SETTINGS
    assert [path.name for path in file.parent.iterdir()] == ["settings.toml"]


def test_disk_full_at_the_start_of_the_host() -> None:
    assert_clear(sndr("serve", "--json", file_limit=1), 7, "disk_full")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte, where this user may mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("only root may mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_disk_that_fills_up_under_a_running_host(small_disk: Path, home: Path) -> None:
    for name in ("config", "data"):
        (small_disk / name).mkdir()
        (home / name).symlink_to(small_disk / name)
    with serving() as client:
        before = client.call(ops.SETTINGS)
        with _kept_full(small_disk / "filler"):
            ended = sndr("settings", "set", "models.folders", json.dumps(["/x" * 3000]), "--json")
        assert_clear(ended, 7, "disk_full", "unchanged")
        assert client.call(ops.SETTINGS).settings == before.settings
        (small_disk / "filler").unlink()
        change = SettingsChange(values={"engine.streams": 3})
        after = client.call(ops.CHANGE_SETTINGS, change)
        assert {one.name: one.value for one in after.settings}["engine.streams"] == 3


@contextlib.contextmanager
def _kept_full(filler: Path) -> Iterator[None]:
    """Take what is free, and also what the host frees meanwhile."""
    full, over = threading.Event(), threading.Event()

    def fill() -> None:
        with filler.open("wb", buffering=0) as file:
            while not over.wait(0.005 if full.is_set() else 0):
                try:
                    file.write(bytes(4096))
                except OSError:
                    full.set()

    thread = threading.Thread(target=fill)
    thread.start()
    assert full.wait(60)
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_disk_full_before_a_build_downloads_anything(small_disk: Path) -> None:
    ended = sndr("engine", "build", "llama.cpp", "--json", SNDR_CACHE=str(small_disk))
    assert_clear(ended, 7, "disk_full")
    assert sum(path.stat().st_size for path in small_disk.rglob("*") if path.is_file()) < 100_000


def test_serve_tells_a_terminal_in_a_sentence_and_a_program_in_json() -> None:
    import pty

    for arguments, word in (((), "The engine host serves"), (("--json",), '"event": "serving"')):
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            [*SNDR, "serve", *arguments], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
        ) as process:
            os.close(theirs)
            said = os.read(ours, 4096).decode()
            process.terminate()
            assert process.wait(20) == 0
        os.close(ours)
        assert word in said
        assert ("{" in said) == bool(arguments)


def test_stale_socket_of_a_killed_host_is_no_obstacle(home: Path) -> None:
    folders = Folders.resolve()
    with started("serve") as process:
        assert wait_until(folders.socket.exists)
        process.kill()
    with serving() as client:
        assert client.version is not None
