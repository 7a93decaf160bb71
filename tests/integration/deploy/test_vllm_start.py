"""The demo model on the real vLLM with the overlay, started by the script that its preset becomes."""

import contextlib
import json
import signal
from pathlib import Path

import psutil

from tests.integration.deploy.starting import running, written
from tests.vllm_environment import vllm_venv
from tests.waiting import wait_until


def _alive(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def test_patches_are_in_force_without_this_program(tmp_path: Path) -> None:
    script = written("demo-vllm", tmp_path / "a b", "--installation", str(vllm_venv()))
    cache = tmp_path / "cache"
    manifest = json.loads((script.parent / "overlay" / "manifest.json").read_text(encoding="utf-8"))
    with running(script, cache) as started:
        started.until_said("ready at", seconds=250)
        question = {"model": "sndr-demo", "prompt": "def add(a, b):", "max_tokens": 3}
        answer = started.ask("/v1/completions", question)
        assert answer["usage"]["completion_tokens"] == 3
        processes = [started.engine(), *started.engine().children(recursive=True)]
        environment = started.engine().environ()
        assert environment["SNDR_OVERLAY"] == str(script.parent / "overlay")
        assert started.end(signal.SIGTERM) == 0
        # vLLM's first process does not wait for all of its children.
        assert wait_until(lambda: not [one for one in processes if _alive(one)], 30)
    lines = [
        json.loads(line)
        for ledger in (cache / "ledger").glob("*.jsonl")
        for line in ledger.read_text(encoding="utf-8").splitlines()
    ]
    applied = {one["patch"] for one in lines if one["event"] == "result" and one["outcome"] == "applied"}
    assert applied
    assert applied <= {patch["id"] for patch in manifest["patches"]}
    assert not [one for one in lines if one.get("outcome") == "failed"]
    assert {one["role"] for one in lines} >= {"APIServer", "EngineCore"}
