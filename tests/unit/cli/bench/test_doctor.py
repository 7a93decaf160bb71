"""`sndr doctor` against a host of canned answers."""

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from engine_host.core.diagnosis.shelf import AutopsyShelf
from engine_host.core.paths import Folders
from engine_host.engines.vllm.log import explain_exit
from engine_host.protocol.engines import EngineState
from engine_host.protocol.errors import Problem, Reason
from tests.unit.cli.autopsy.test_autopsy import entry
from tests.unit.cli.fake_host import FakeHost
from tests.unit.core.diagnosis.samples import ID, record
from tests.views.samples import host as samples

NO_RECORDS = {"seq": 1, "folder": "/f", "autopsies": []}
Sndr = Callable[..., tuple[int, str, str]]
KERNEL = (
    "(EngineCore pid=2) RuntimeError: CUDA error: no kernel image is available for execution on the device"
)
LINES = (*("INFO loading" for _ in range(20)), KERNEL, *("  File \x1b[2Jcore.py" for _ in range(20)))


def test_a_failed_start_is_told_with_its_decisive_lines(host: FakeHost, sndr: Sndr) -> None:
    problem = explain_exit(1, LINES, "m", "vLLM 0.32.0")
    failed = samples.engine(EngineState.FAILED, problem=problem, last_lines=LINES)
    host.answers["GET /v1/diagnosis"] = (200, {"seq": 0, "seconds": 600.0, "busy": {}, "causes": []})
    host.answers["GET /v1/engines"] = (200, {"seq": 1, "engines": [failed.model_dump(mode="json")]})
    host.answers["GET /v1/autopsies"] = (200, NO_RECORDS)
    code, out, _ = sndr("doctor")
    assert code == 0
    assert f"{failed.name} ({failed.id}) failed to start" in out
    assert f"  > {KERNEL}" in out
    assert "vLLM 0.32.0 was not built for this generation of GPUs." in out
    assert KERNEL in out
    assert out.count("loading") == 2
    assert "\x1b" not in out
    assert f"$ sndr logs {failed.id}" in out
    assert f"$ sndr autopsy {failed.id}" in out
    refused = failed.model_copy(update={"stages": (), "ready_at": None})
    host.answers["GET /v1/engines"] = (200, {"seq": 1, "engines": [refused.model_dump(mode="json")]})
    out = sndr("doctor")[1]
    assert "was refused its start" in out
    assert "sndr logs" not in out, "without a process there is no log"


def test_the_one_that_died_last_comes_first_whenever_it_was_started(host: FakeHost, sndr: Sndr) -> None:
    now = time.time()
    made = partial(samples.engine, EngineState.FAILED)
    died = Problem(reason=Reason.ENGINE_KILLED, message="Somebody ended it.")
    old = Problem(reason=Reason.PORT_IN_USE, message="The port was taken.")
    engines = (
        made(id="engine-b", name="b", created_at=now - 50, ended_at=now - 40, problem=old),
        made(id="engine-a", name="a", created_at=now - 90, ended_at=now - 2, problem=died),
        made(id="engine-c", name="c", created_at=now - 99, ended_at=now - 98, problem=old),
        samples.engine(EngineState.READY, id="engine-d", name="c", created_at=now - 5),
    )
    record = entry(at=now - 3600, engine="engine-z", name="z", sentence="It \x1b[31mwas long ago.")
    host.answers["GET /v1/diagnosis"] = (200, {"seq": 0, "seconds": 600.0, "busy": {}, "causes": []})
    told = [one.model_dump(mode="json") for one in engines]
    host.answers["GET /v1/engines"] = (200, {"seq": 1, "engines": told})
    host.answers["GET /v1/autopsies"] = (200, {**NO_RECORDS, "autopsies": [record.model_dump(mode="json")]})
    out = sndr("doctor")[1]
    assert "a (engine-a) failed to start" in out
    said = ("Somebody ended it.", "b (engine-b)", "c (engine-c)", "z (engine-z)")
    places = [out.index(words) for words in said]
    assert places == sorted(places)
    assert "The port was taken. It was started again, and runs." in out
    assert f"$ sndr autopsy {record.id}" in out
    assert "\x1b" not in out
    found = json.loads(sndr("doctor", "--json")[1])
    assert [one["engine"] for one in found["ends"]] == ["engine-a", "engine-b", "engine-c", "engine-z"]
    assert found["failed"]["id"] == "engine-a"


def test_without_a_host_the_records_are_told(home: Path, sndr: Sndr, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = sndr("doctor")
    assert (code, "No engine died that is on record." in out) == (0, True)
    assert sndr("doctor", "demo")[0] == 3
    AutopsyShelf(Folders.resolve().autopsies).save(record(at=time.time()))
    code, out, err = sndr("doctor")
    assert (code, "No engine host runs" in err) == (0, True)
    assert "demo (e) died while it served" in out
    assert "Error: It ended." in out
    assert "$ sndr autopsy e" in out
    code, _, err = sndr("status")
    assert code == 3
    assert "The last engine that ended by itself" in err
    assert f"$ sndr autopsy {ID}" in err
    monkeypatch.setenv("COLUMNS", "50")
    assert max(map(len, sndr("status")[2].splitlines())) <= 50, "a note of two lines is folded too"


def test_two_seconds_of_work_are_no_verdict(host: FakeHost, sndr: Sndr) -> None:
    found = {"seq": 0, "seconds": 600.0, "busy": {"demo": 2.0}, "causes": [], "too_little": ["demo"]}
    host.answers["GET /v1/diagnosis"] = (200, found)
    host.answers["GET /v1/engines"] = (200, {"seq": 1, "engines": []})
    host.answers["GET /v1/autopsies"] = (200, NO_RECORDS)
    out = sndr("doctor")[1]
    assert "Too little was measured to judge it" in out
    assert "Nothing that was measured slowed it down" not in out
    assert "demo worked for at most 2.0 s of the last 10 min 00 s." in out
    host.answers["GET /v1/diagnosis"] = (200, {**found, "since_ready": {"demo": 20.0}})
    assert "demo worked for at most 2.0 s of the 20.0 s since it was ready." in sndr("doctor")[1]
    host.answers["GET /v1/diagnosis"] = (200, {**found, "busy": {"demo": 0.0}, "since_ready": {"demo": 20.0}})
    assert "demo did not work in the 20.0 s since it was ready." in sndr("doctor")[1]
    host.answers["GET /v1/diagnosis"] = (200, {**found, "too_little": []})
    assert "Nothing that was measured slowed it down" in sndr("doctor")[1]


def test_a_start_that_takes_its_time_is_well(host: FakeHost, sndr: Sndr) -> None:
    starting = samples.engine(EngineState.STARTING)
    host.answers["GET /v1/diagnosis"] = (
        200,
        {"seq": 0, "seconds": 600.0, "busy": {"sndr-demo": 0.0}, "causes": []},
    )
    host.answers["GET /v1/engines"] = (200, {"seq": 1, "engines": [starting.model_dump(mode="json")]})
    host.answers["GET /v1/autopsies"] = (200, NO_RECORDS)
    _, out, _ = sndr("doctor")
    assert "sndr-demo is starting and has not failed: Load the weights." in out
    assert "Minutes are normal" in out
    assert "failed to start" not in out
