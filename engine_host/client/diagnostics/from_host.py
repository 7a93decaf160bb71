"""The part of a report that a running host tells."""

import contextlib
import itertools
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from engine_host.client.diagnostics.collected import Collected
from engine_host.client.sync import ControlClient
from engine_host.core.errors import HostError
from engine_host.core.outside import json_text
from engine_host.protocol.bench.diagnosis import DiagnosisQuery
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.jobs import JobKind
from engine_host.protocol.operations import remote_hosts
from engine_host.protocol.operations import table as ops
from engine_host.protocol.telemetry import TelemetryQuery

MINUTES = 10.0
"""How far back measurements go."""
_ENGINES = 6
_JOBS = 30
_EVENTS = 500
_LOOK_BACK = 10_000
_ENDED = {EngineState.UNLOADED, EngineState.FAILED}
# Measurements and log lines have files of their own; what ssh asks a person is theirs.
_LEFT_OUT = {"heartbeat", "engine.readings", "telemetry.sample", "log.line", "hosts.question"}
# Their results and errors can quote what a model was asked and answered.
_OF_TEXTS = {JobKind.PATCH_BISECT, JobKind.KV_QUALITY, JobKind.ROUTE_CUTOVER, JobKind.ROUTE_PROMOTE}
# A note is a person's own; a request of a client says who asked.
_TAKEN_OUT = {
    "remote": ("notes", "address_command", "destination", "address"),
    "request": ("client", "client_name", "key", "conversation", "problem"),
    # Each change of an engine carries it whole; starts and patches have files of their own.
    "engine": ("plan", "buffers", "last_lines"),
    "patches": ("planned", "processes"),
}


def tell_of_host(client: ControlClient, into: Collected) -> None:
    """Add what a host tells; what it cannot tell is named as missing, and the rest goes on."""
    engines: tuple[Engine, ...] = ()

    def starts() -> None:
        nonlocal engines
        found = client.call(ops.ENGINES).engines
        newest = sorted(found, key=lambda one: (one.state not in _ENDED, one.created_at), reverse=True)
        engines = tuple(newest[:_ENGINES])
        into.add_value("engines/starts.json", [one.model_dump(mode="json") for one in engines])

    parts: tuple[tuple[str, Callable[[], None]], ...] = (
        ("settings.json", lambda: _settings(client, into)),
        ("machine.json", lambda: _machine(client, into)),
        ("engines/installed.json", lambda: _installed(client, into)),
        ("engines/starts.json", starts),
        ("engines/patches.json", lambda: _patches(client, into, engines)),
        ("diagnosis.json", lambda: into.add_value(
            "diagnosis.json", client.call(ops.DIAGNOSE, DiagnosisQuery(minutes=MINUTES)))),
        ("jobs.json", lambda: _jobs(client, into)),
        ("events.jsonl", lambda: into.add_lines("events.jsonl", _events(client))),
        ("telemetry.jsonl", lambda: _telemetry(client, into)),
    )  # fmt: skip
    # Known before anything else comes in: their names stand in events, plans and logs.
    with contextlib.suppress(HostError):
        for host in client.call(remote_hosts.HOSTS).hosts:
            into.mask.know_hosts([host.name, host.destination])
    for name, add in parts:
        try:
            add()
        except HostError as error:
            into.lack(name, error.problem.sentence())


def told_job(job: dict[str, Any]) -> dict[str, Any]:
    """Return a job without its result, and of one about texts without all that may quote them."""
    kept = {name: value for name, value in job.items() if name != "result"}
    if job.get("kind") in _OF_TEXTS:
        error = job.get("error")
        reason = error.get("reason") if isinstance(error, dict) else None
        step = job.get("step")
        step = (
            {name: value for name, value in step.items() if name != "detail"}
            if isinstance(step, dict)
            else None
        )
        kept = {
            name: kept.get(name) for name in ("id", "kind", "state", "created_at", "started_at", "ended_at")
        }
        kept |= {"step": step, "error": reason}
    return kept


def told_event(event: dict[str, Any]) -> dict[str, Any] | None:
    """Return an event as a report has it; None for one that is left out."""
    if event.get("kind") in _LEFT_OUT:
        return None
    found = dict(event)
    if isinstance(job := event.get("job"), dict):
        found["job"] = told_job(job)
    for name, out in _TAKEN_OUT.items():
        if isinstance(inner := event.get(name), dict):
            found[name] = {key: value for key, value in inner.items() if key not in out}
    return found


def _settings(client: ControlClient, into: Collected) -> None:
    page = client.call(ops.SETTINGS)
    for one in page.settings:
        if one.name == "endpoint.allowed_hosts" and isinstance(one.value, list):
            into.mask.know_hosts(str(name) for name in one.value)
    into.add_value("settings.json", page)


def _machine(client: ControlClient, into: Collected) -> None:
    told = client.call(ops.HOST)
    into.mask.know_hosts([told.hostname])
    # A name of one or two letters is a part of many words, and so taken out of no text.
    into.add_value("machine.json", told.model_dump(mode="json", exclude={"hostname"}))


def _installed(client: ControlClient, into: Collected) -> None:
    found = {
        "llama.cpp": client.call(ops.SERVERS).model_dump(mode="json"),
        "vllm": client.call(ops.INSTALLATIONS).model_dump(mode="json"),
    }
    into.add_value("engines/installed.json", found)


def _patches(client: ControlClient, into: Collected, engines: tuple[Engine, ...]) -> None:
    found: dict[str, Any] = {}
    for engine in engines:
        if engine.plan.patches is None:
            continue
        try:
            found[engine.id] = client.call(ops.ENGINE_PATCHES, id=engine.id).model_dump(mode="json")
        except HostError as error:
            into.lack(f"engines/patches.json of {engine.id}", error.problem.sentence())
    if found:
        into.add_value("engines/patches.json", found)
    else:
        into.lack("engines/patches.json", "No start of vLLM with patches is known to the host.")


def _jobs(client: ControlClient, into: Collected) -> None:
    newest = client.call(ops.JOBS).jobs[:_JOBS]
    into.add_value("jobs.json", [told_job(one.model_dump(mode="json")) for one in newest])


def _events(client: ControlClient) -> list[dict[str, Any]]:
    """Return the last events, oldest first; lines that are none are passed over."""
    assert client.version is not None
    # As it was at the beginning: what this report asks for makes events of its own.
    latest = client.version.seq
    first = max(0, latest - _LOOK_BACK)
    kept: deque[dict[str, Any]] = deque(maxlen=_EVENTS)
    lines: Iterator[str] = client.event_lines(first) if first < latest else iter(())
    for line in itertools.islice(lines, _LOOK_BACK + 100):
        try:
            event = json_text.parse_object(line)
        except ValueError:
            continue
        if (told := told_event(event)) is not None:
            kept.append(told)
        reached = event.get("latest") if event.get("kind") in {"reset", "heartbeat"} else event.get("seq")
        if isinstance(reached, int) and reached >= latest:
            break
    return list(kept)


def _telemetry(client: ControlClient, into: Collected) -> None:
    page = client.call(ops.TELEMETRY, TelemetryQuery(since=time.time() - MINUTES * 60))
    into.add_lines("telemetry.jsonl", (one.model_dump(mode="json") for one in page.series))
