"""`sndr --host NAME` from nothing to a chat: real ssh through a jump host, a real host in a second home."""

import json
import signal
import time

import psutil
import pytest

from engine_host.cli import main
from engine_host.client import sync
from tests.integration.host_process import serving, sndr
from tests.integration.remote.machines import Machines

pytestmark = pytest.mark.timeout(300)


def test_a_chat_is_answered_there_and_nothing_runs_here(
    machines: Machines, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SNDR_SSH_CONFIG", str(machines.config))
    with serving(), machines.engine_host():
        assert sndr("host", "add", "gpu").code == 0
        started = sndr("--host", "gpu", "run", "--demo", "--detach")
        assert started.code == 0, started.err
        assert "sndr --host gpu stop" in started.out
        shown = sndr("--host", "gpu", "status", "--json")
        assert [one["state"] for one in json.loads(shown.out)["engines"]] == ["ready"]
        said = sndr("--host", "gpu", "chat", "Hello", "--max-tokens", "8", "--json")
        assert said.code == 0, said.out
        assert json.loads(said.out)["text"]
        assert not json.loads(sndr("status", "--json").out)["engines"], "nothing runs here"
        last = sndr("--host", "gpu", "logs", "host", "--lines", "1")
        assert last.code == 0
        frozen_is_tried_once(machines, monkeypatch, capsys)
        assert sndr("--host", "gpu", "stop").code == 0
        ended = sndr("--host", "gpu", "quit")
        assert ended.code == 0, ended.err
        gone = sndr("--host", "gpu", "status", "--json")
        assert gone.code == 3
        assert sndr("host", "disconnect", "gpu").code == 0


def frozen_is_tried_once(
    machines: Machines, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A host that is frozen: what is asked waits for its first word, and that once."""
    wait = 3.0
    monkeypatch.setattr(sync, "_FIRST_WORD", wait)
    owner = machines.far_folders.read_lock_owner()
    assert owner is not None
    there = psutil.Process(owner.pid)
    there.send_signal(signal.SIGSTOP)
    try:
        for command in ("status", "models"):
            began = time.monotonic()
            code = main(["--host", "gpu", command, "--json"])
            took = time.monotonic() - began
            problem = json.loads(capsys.readouterr().out.splitlines()[-1])["error"]
            assert (code, problem["reason"]) == (3, "host_gone"), problem
            assert problem["fix"]["command"] == "sndr host connect gpu"
            assert wait <= took < 2 * wait, command
    finally:
        there.send_signal(signal.SIGCONT)
    assert main(["--host", "gpu", "status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["host"]["pid"] == owner.pid
