"""A model that is sent runs there, and one whose file is gone is sent again: real ssh, host and engine."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from engine_host.core.package_data import resources
from tests.integration.host_process import serving, sndr
from tests.integration.remote.machines import Machines

pytestmark = pytest.mark.timeout(300)


def last(printed: str) -> dict[str, Any]:
    """Return the result of a command, after the steps of its job."""
    found: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return found


def test_a_model_that_was_sent_is_listed_runs_and_comes_back_when_its_file_is_gone(
    machines: Machines, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SNDR_SSH_CONFIG", str(machines.config))
    model = tmp_path / "tiny.gguf"
    shutil.copy(next((resources() / "models").rglob("*.gguf")), model)
    with serving(), machines.engine_host():
        assert sndr("host", "add", "gpu").code == 0
        planned = sndr("host", "send", "gpu", str(model), "--dry-run", "--json")
        assert planned.code == 0, planned.err
        assert json.loads(planned.out)["left"] == model.stat().st_size
        sent = sndr("host", "send", "gpu", str(model), "--json")
        assert sent.code == 0, sent.out
        told = last(sent.out)
        assert told["listed_as"] == "tiny"
        again = sndr("host", "send", "gpu", str(model))
        assert "lay on gpu already" in again.out
        started = sndr("--host", "gpu", "run", "tiny", "--detach")
        assert started.code == 0, started.err
        assert "sndr routes set tiny gpu/tiny" in started.out
        assert sndr("--host", "gpu", "stop").code == 0
        Path(told["path"]).unlink()
        gone = sndr("--host", "gpu", "run", "tiny", "--detach", "--json")
        assert gone.code == 4
        problem = last(gone.out)["error"]
        assert problem["reason"] == "model_file_missing"
        assert problem["fix"]["command"].startswith("sndr host send gpu ")
        assert last(sndr("host", "send", "gpu", str(model), "--json").out)["carried"] > 0
        assert sndr("--host", "gpu", "run", "tiny", "--detach").code == 0
        chat = sndr("--host", "gpu", "chat", "Hello", "--max-tokens", "8", "--json")
        assert json.loads(chat.out)["text"]
        unknown = sndr("host", "fetch", "gpu", "no-such-model", "--json")
        assert (unknown.code, last(unknown.out)["error"]["reason"]) == (4, "model_file_missing")
        fetched = sndr("host", "fetch", "gpu", "tiny", "--to", str(tmp_path / "back"), "--json")
        assert fetched.code == 0, fetched.out
        assert (tmp_path / "back" / "tiny.gguf").read_bytes() == model.read_bytes()
        assert sndr("--host", "gpu", "quit").code == 0
