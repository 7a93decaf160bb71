"""`make run` without a display: the demo on the command line, ended by Ctrl+C and by force."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import processes_of
from tests.integration.host_process import ROOT, SNDR, alive, environment, sndr
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(180)


@contextmanager
def running(*command: str, out: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A program in a process group of its own, as a shell starts it."""
    with out.open("wb") as file:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(10)


def serves(process: "subprocess.Popen[bytes]", out: Path) -> bool:
    """Whether it has come to the point of serving."""
    assert process.poll() is None, out.read_text(encoding="utf-8", errors="replace")
    return b"Serving." in out.read_bytes()


def test_make_run_answers_serves_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with running("packaging/run.sh", out=out) as process:
        assert wait_until(lambda: serves(process, out), 60)
        said = out.read_text(encoding="utf-8")
        assert re.search(r"TTFT [\d.]+ m?s \(client\) · \d+ tokens · [\d.]+ tok/s", said), said
        address = re.search(r"Endpoint: (http://127\.0\.0\.1:\d+/v1)", said)
        assert address, said
        with urllib.request.urlopen(f"{address[1]}/models", timeout=10) as answer:
            assert json.load(answer)["data"][0]["id"].startswith("sndr-demo")
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(30) == 0


def test_ctrl_c_through_make_leaves_nothing(tmp_path: Path) -> None:
    if shutil.which("make") is None or not (ROOT / ".venv" / "stamps").is_dir():
        pytest.skip("this is not a clone that was set up by make")
    out = tmp_path / "out"
    with running("make", "run", out=out) as process:
        assert wait_until(lambda: serves(process, out), 90)
        os.killpg(process.pid, signal.SIGINT)
        process.wait(30)
    # make itself reports every interrupt as a failure; the recipe ended in order.
    assert "Stopping sndr-demo" in out.read_text(encoding="utf-8")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["term", "hangup"])
def test_other_signals_end_it_in_order_too(number: signal.Signals, tmp_path: Path, home: Path) -> None:
    out = tmp_path / "out"
    with running(*SNDR, "run", "--demo", out=out) as process:
        assert wait_until(lambda: serves(process, out), 60)
        process.send_signal(number)
        assert process.wait(30) == 0
    assert wait_until(lambda: not processes_of(home), 20)


@pytest.mark.parametrize("victim", ["command", "host", "engine"])
def test_killing_any_part_leaves_nothing(victim: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with running(*SNDR, "run", "--demo", out=out) as process:
        assert wait_until(lambda: serves(process, out), 60)
        status = json.loads(sndr("status", "--json").out)
        pids = {"command": process.pid, "host": status["host"]["pid"], "engine": status["engines"][0]["pid"]}
        os.kill(pids[victim], signal.SIGKILL)
        code = process.wait(30)
        expected = {"command": -signal.SIGKILL, "host": 3, "engine": 5}
        assert code == expected[victim], out.read_text(encoding="utf-8", errors="replace")
        assert wait_until(lambda: not alive(list(pids.values())), 15)
    if victim != "command":
        assert "Error: " in out.read_text(encoding="utf-8")


def test_interrupt_while_it_starts_stops_the_start(tmp_path: Path, home: Path) -> None:
    out = tmp_path / "out"
    with running(*SNDR, "run", "--demo", out=out) as process:
        assert wait_until(lambda: len(processes_of(home)) > 1, 30)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) in {0, 130}


def test_detached_engine_is_found_and_stopped() -> None:
    assert sndr("run", "--demo", "--detach").code == 0
    chat = sndr("chat", "Hello!", "--max-tokens", "8")
    assert (chat.code, bool(chat.out.strip())) == (0, True)
    assert sndr("stop").code == 0
    assert sndr("chat", "Hello!").code == 4
    assert sndr("quit").code == 0
    assert sndr("status").code == 3


def test_a_second_run_is_refused_and_a_replacement_keeps_the_first_ones_host(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with running(*SNDR, "run", "--demo", out=first) as owner:
        assert wait_until(lambda: serves(owner, first), 60)
        refused = sndr("run", "--demo", "--json")
        assert (refused.code, refused.problem()["reason"]) == (6, "conflict")
        assert engine_state() in {"ready", "busy"}
        with running(*SNDR, "run", "--demo", "--replace", "--name", "second", out=second) as other:
            assert wait_until(lambda: serves(other, second), 60)
            said = "was replaced by second; the host keeps running for second"
            assert wait_until(lambda: said in first.read_text(encoding="utf-8"), 10)
            assert owner.poll() is None
            assert sndr("chat", "Hello!", "--max-tokens", "4").code == 0
            other.send_signal(signal.SIGINT)
            assert other.wait(30) == 0
        assert owner.wait(30) == 0
        assert "No engine is left." in first.read_text(encoding="utf-8")


def test_ctrl_c_ends_ones_own_engine_and_leaves_those_of_others(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with running(*SNDR, "run", "--demo", "--name", "one", out=first) as owner:
        assert wait_until(lambda: serves(owner, first), 60)
        with running(*SNDR, "run", "--demo", "--name", "two", out=second) as other:
            assert wait_until(lambda: serves(other, second), 60)
            assert (sndr("chat", "Hello!").code, sndr("stop").code) == (2, 2), "which of the two?"
            owner.send_signal(signal.SIGINT)
            assert owner.wait(30) == 0
            assert "two still runs, and the host stays" in first.read_text(encoding="utf-8")
            assert sndr("chat", "Hello!", "--max-tokens", "4").code == 0
            other.send_signal(signal.SIGINT)
            assert other.wait(30) == 0
    assert sndr("quit").code == 0


def test_kept_engine_outlives_its_host_and_is_taken_up_again() -> None:
    assert sndr("run", "--demo", "--detach", "--keep").code == 0
    before = json.loads(sndr("status", "--json").out)["engines"][0]
    assert sndr("quit").code == 0
    assert alive([before["pid"]])
    # Any command that needs a host starts one for itself; this one stays.
    with running(*SNDR, "serve", out=Path(os.environ["SNDR_HOME"]) / "out") as process:
        assert wait_until(lambda: sndr("status").code == 0, 20)
        assert wait_until(lambda: engine_state() in {"ready", "busy"}, 20)
        after = json.loads(sndr("status", "--json").out)["engines"][0]
        assert (after["pid"], after["adopted"]) == (before["pid"], True)
        assert sndr("stop", "--all").code == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    assert wait_until(lambda: not alive([before["pid"]]), 10)


def engine_state() -> str:
    """The state of the first engine."""
    engines = json.loads(sndr("status", "--json").out)["engines"]
    return str(engines[0]["state"]) if engines else ""
