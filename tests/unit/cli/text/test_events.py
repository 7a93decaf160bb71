"""Every kind of event has one short line, also one that this version does not know."""

from typing import Any

import pytest

from engine_host.cli.text.events import summary
from engine_host.protocol.events import EVENT, EventBase
from tests.unit.cli.start.test_run import HOST
from tests.unit.cli.test_commands import ENGINE

RESULT: dict[str, Any] = {
    "patch": "family.one",
    "outcome": "failed",
    "reason": "raised",
    "operations": [{"kind": "text", "target": "vllm.x", "outcome": "failed", "before": "0" * 64}],
}
PROCESS: dict[str, Any] = {
    "pid": 7,
    "role": "EngineCore",
    "since": 1.0,
    "results": [
        RESULT,
        *({"patch": f"family.p{number}", "outcome": "applied"} for number in range(50)),
    ],
}
PATCHES = {
    "seq": 1,
    "engine": "engine-1",
    "planned": {"digest": "d", "chosen": [f"family.p{number}" for number in range(50)]},
    "processes": [PROCESS, {**PROCESS, "pid": 8, "role": "Worker", "rank": 0}],
}
JOB = {
    "id": "job-1",
    "kind": "engine.build",
    "title": "Build llama.cpp",
    "touches": "server",
    "state": "running",
    "created_at": 1.0,
}
REQUEST = {
    "id": "req_1",
    "engine": "engine-1",
    "model": "demo",
    "route": "/v1/completions",
    "state": "done",
    "created_at": 1.0,
}
LINE = {"source": "engine-1", "number": 1, "at": 1.0, "severity": "info", "text": "loading"}
ON_DEMAND = {
    "name": "small",
    "launch": {"model": "m"},
    "command": "sndr on-demand add m",
    "state": "loaded",
    "keep_alive": 60,
}
FINDING = {"id": "f", "severity": "warning", "message": "The disk is nearly full."}
STATE = {"state": "connected", "sentence": "Connected."}
EVENTS: dict[str, tuple[dict[str, Any], str]] = {
    "engine.state": ({"engine": ENGINE}, "demo (engine-1) ready"),
    "engine.stage": ({"engine": "engine-1", "stage": {"name": "loading", "started_at": 1}}, "loading"),
    "engine.readings": (
        {"engine": "engine-1", "readings": {"at": 1.0, "slots_busy": 2, "decode_rate": 31.26}},
        "engine-1 2 streams busy, 31.3 tokens/s written",
    ),
    "engine.request": ({"request": REQUEST}, "req_1 demo done"),
    "telemetry.sample": ({"sample": {"at": 1.0, "values": {"ram": 5.0}}}, "ram=5"),
    "telemetry.mark": (
        {"mark": {"id": "m", "at": 1.0, "kind": "died", "text": "demo died", "engine": "engine-1"}},
        "demo died",
    ),
    "job.step": ({"job": JOB}, "Build llama.cpp: running"),
    "job.done": ({"job": {**JOB, "state": "done"}}, "Build llama.cpp: done"),
    "host.state": ({"state": "serving", "endpoint": HOST["endpoint"]}, "serving http://127.0.0.1:8020/v1"),
    "models.changed": ({}, "the models changed"),
    "servers.changed": ({}, "the servers changed"),
    "routes.changed": ({}, "the routes changed"),
    "patch.result": (
        {"engine": "engine-1", "pid": 7, "role": "EngineCore", "result": RESULT},
        "engine-1 EngineCore 7: family.one failed",
    ),
    "patch.summary": ({"patches": PATCHES}, "engine-1 50 patches applied, 1 failed: family.one"),
    "patches.changed": ({}, "the patches changed"),
    "presets.changed": ({}, "the presets changed"),
    "alerts.changed": ({}, "the alerts changed"),
    "bench.changed": ({}, "the runs of the bench lab changed"),
    "on_demand.changed": (
        {"change": "evicted", "model": ON_DEMAND, "detail": "for large"},
        "small evicted: loaded  for large",
    ),
    "hosts.changed": (
        {"remote": {"name": "gpu", "destination": "gpu", "mode": "agentless"} | STATE},
        "gpu connected: Connected.",
    ),
    "hosts.question": (
        {"question": {"id": "q", "host": "gpu", "kind": "host_key", "text": "?", "asked_at": 1}},
        "gpu: ssh asks for host key",
    ),
    "settings.changed": ({"names": ["endpoint.port"]}, "endpoint.port"),
    "log.line": ({"lines": [LINE, LINE]}, "engine-1: loading (+1)"),
    "finding": ({"finding": FINDING}, "warning: The disk is nearly full."),
    "notice": ({"key": "k", "severity": "info", "text": "Hello."}, "info: Hello."),
    "heartbeat": ({"latest": 5}, "nothing new; the newest is 5"),
    "reset": ({"run_id": "r", "latest": 5}, "older events are gone; the newest is 5"),
    "missed": ({"first": 1, "last": 5}, "1 to 5 were not sent"),
}


def test_no_kind_is_left_out() -> None:
    assert {one.model_fields["kind"].default for one in EventBase.__subclasses__()} == set(EVENTS)


@pytest.mark.parametrize("kind", EVENTS)
def test_every_kind_has_one_short_line(kind: str) -> None:
    content, text = EVENTS[kind]
    line = summary(EVENT.validate_python({"kind": kind, **content}).model_dump(mode="json"))
    assert text in line
    assert len(line) <= 200
    assert not set("{}\n") & set(line), "no value as Python writes it"


def test_an_unknown_kind_is_short_too() -> None:
    event = {"kind": "of.later", "seq": 1, "thing": {"a": PATCHES}, "names": ["x", "y"], "more": [PATCHES]}
    assert summary(event) == "thing=(1 fields)  names=x, y  more=(1 entries)"
    assert len(summary({**event, "text": "word " * 500})) == 160
