"""Prompts and answers are not written to disk: a marked word in every place of a request, then a search.

vLLM's part is in `tests/integration/host/vllm/test_served.py`, which has one at work.
"""

import json
import os
import signal
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine_host.protocol.endpoint.requests import RequestQuery, StartCapture
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import table as ops
from tests.integration.engines.conftest import built_folder
from tests.integration.host.conftest import RunningHost, alive, wait_for
from tests.integration.host_process import sndr
from tests.integration.privacy.canary import WORD, ask_everything, found_below

__all__ = ["built_folder"]
SMALL = Overrides(context=1024, streams=2)


@pytest.fixture
def host() -> Iterator[RunningHost]:
    """A host that says all that it has to say."""
    assert sndr("settings", "set", "host.log_level", "debug").code == 0
    running = RunningHost().connect()
    yield running
    running.end(signal.SIGKILL if running.process.poll() is None else signal.SIGTERM)
    wait_for(lambda: not (running.folders.run / "control.sock").exists(), "the reaper's work", 10)


def core_limit(pid: int) -> str:
    """The bytes of a core dump that a process may leave."""
    lines = Path(f"/proc/{pid}/limits").read_text(encoding="ascii").splitlines()
    return next(line for line in lines if line.startswith("Max core file size")).split()[4]


def look_through_report(host: RunningHost, engine: Engine, target: Path) -> None:
    """Fail for a bug report with a word of a request or the host's token, or without what it is for."""
    told = sndr("diagnostics", "--output", str(target), "--json")
    assert told.code == 0, told.out
    # The demo is no vLLM.
    assert [one["name"] for one in json.loads(told.out)["missing"]] == ["engines/patches.json"]
    with zipfile.ZipFile(target) as archive:
        found = {one.partition("/")[2]: archive.read(one).decode() for one in archive.namelist()}
    token = host.folders.token.read_text(encoding="utf-8").strip()
    for name, text in found.items():
        assert WORD.lower() not in text.lower(), name
        assert token not in text, name
    assert [one["id"] for one in json.loads(found["engines/starts.json"])] == [engine.id]
    assert "listening on" in found[f"logs/engines/{engine.id}.log"]
    kinds = {json.loads(line)["kind"] for line in found["events.jsonl"].splitlines()}
    assert "engine.request" in kinds
    assert any(json.loads(line)["values"] for line in found["telemetry.jsonl"].splitlines())
    assert list(json.loads(found["diagnosis.json"])["busy"]) == [engine.name]


@pytest.mark.parametrize("server", ["prebuilt", "built"])
def test_llama_cpp_writes_down_no_word_of_a_request(
    server: str, host: RunningHost, home: Path, request: pytest.FixtureRequest
) -> None:
    if server == "built":
        path = request.getfixturevalue("built_folder") / "bin" / "llama-server"
        assert sndr("settings", "set", "engine.own_server", str(path)).code == 0
        assert sndr("settings", "set", "engine.server", "own").code == 0
    engine = host.start(overrides=SMALL)
    assert engine.pid is not None
    said = ask_everything(host.port, engine.name)
    assert {said["prompt"], said["grammar"], said["stream of an answer"]} == {200}
    assert said["refused grammar"] == said["schema with a reference"] == 400
    assert host.engine(engine.id).state in {EngineState.READY, EngineState.BUSY}

    # While it runs: what lies beside its socket too; and the log says that something was left out.
    assert found_below(WORD, home) == []
    log = host.folders.logs / "engines" / f"{engine.id}.log"
    text = log.read_text(encoding="utf-8", errors="replace")
    assert "withheld:" in text
    assert "prompt eval time" in text, "what was measured is written"
    assert "withheld:" not in text.partition("listening on")[0], "a start is written whole"
    assert [core_limit(pid) for pid in (engine.pid, host.process.pid)] in ([["1", "1"], ["0", "0"]])

    # Its end by a crash, and the host's: what is said and saved then holds nothing either.
    os.kill(engine.pid, signal.SIGABRT)
    ended = host.until(engine.id, EngineState.FAILED)
    assert ended.problem is not None
    assert WORD.lower() not in host.client.call(ops.ENGINES).model_dump_json().lower()
    saved = home / "data" / "autopsies"
    wait_for(lambda: list(saved.glob("*.json")) or None, "the record of its end", 60)
    host.end(signal.SIGKILL)
    wait_for(lambda: not alive(engine.pid or 0), "the engine's end", 10)
    assert found_below(WORD, home) == []
    assert not [name for name in os.listdir("/") if name.startswith("core")]


def test_what_is_captured_stays_in_memory_until_it_is_forgotten(host: RunningHost, home: Path) -> None:
    engine = host.start(overrides=SMALL)
    assert host.client.call(endpoint_ops.CAPTURE_STATE).until is None, "off unless switched on"
    assert host.client.call(endpoint_ops.START_CAPTURE, StartCapture(minutes=15)).until is not None
    ask_everything(host.port, engine.name)
    requests = host.client.call(endpoint_ops.REQUESTS, RequestQuery()).requests
    assert all(one.captured for one in requests)
    details = [host.client.call(endpoint_ops.REQUEST, id=one.id).captured for one in requests]
    assert any(one is not None and WORD in one.asked.text for one in details)
    assert sndr("requests", "show", requests[0].id).code == 0
    assert found_below(WORD, home) == []
    look_through_report(host, engine, home / "report.zip")
    file = home / "kept.json"
    assert sndr("requests", "export", "--all", "-o", str(file)).code == 0
    assert file.stat().st_mode & 0o777 == 0o600
    assert WORD in file.read_text(encoding="utf-8")
    file.unlink()
    assert host.client.call(endpoint_ops.STOP_CAPTURE).requests == 0
    assert host.client.call(endpoint_ops.REQUEST, id=requests[0].id).captured is None
    host.client.call(endpoint_ops.START_CAPTURE, StartCapture(minutes=15))
    host.end()
    assert found_below(WORD, home) == []
    again = RunningHost().connect()
    try:
        assert again.client.call(endpoint_ops.CAPTURE_STATE).until is None, (
            "a start of the host begins without it"
        )
    finally:
        again.end()
