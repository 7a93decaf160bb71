"""The part of a report that a running host tells."""

import contextlib
import itertools
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from engine_host.client.diagnostics.collected import Collected
from engine_host.client.diagnostics.known_names import learn_from_settings, learn_from_value
from engine_host.client.diagnostics.mask import Mask
from engine_host.client.diagnostics.quoting_logs import without_quotes
from engine_host.client.sync import ControlClient
from engine_host.core.errors import HostError
from engine_host.core.outside import json_text
from engine_host.protocol.bench.diagnosis import DiagnosisQuery
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.jobs import JobKind
from engine_host.protocol.logs import LogQuery
from engine_host.protocol.operations import endpoint, remote_hosts
from engine_host.protocol.operations import table as ops
from engine_host.protocol.telemetry import TelemetryQuery

MINUTES = 10.0
"""How far back measurements go."""
_ENGINES = 6
_JOBS = 30
_EVENTS = 500
_LINES = 2_000
_AUTOPSIES = 3
_LOOK_BACK = 10_000
_ENDED = {EngineState.UNLOADED, EngineState.FAILED}
# Measurements and log lines have files of their own; what ssh asks a person is theirs.
_LEFT_OUT = {"heartbeat", "engine.readings", "telemetry.sample", "log.line", "hosts.question"}
# Their results and errors can quote what a model was asked and answered.
_OF_TEXTS = {JobKind.PATCH_BISECT, JobKind.KV_QUALITY, JobKind.ROUTE_CUTOVER, JobKind.ROUTE_PROMOTE}
# A note is a person's own; a request of a client says who asked.
_TAKEN_OUT = {
    "remote": ("notes", "rejected", "tasks", "address_command", "destination", "address"),
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
        told = [one.model_dump(mode="json") for one in engines]
        learn_from_value(told, into.mask)
        into.add_value("engines/starts.json", [without_quotes(one) for one in told])

    parts: tuple[tuple[str, Callable[[], None]], ...] = (
        ("settings.json", lambda: _settings(client, into)),
        ("machine.json", lambda: _machine(client, into)),
        ("engines/installed.json", lambda: _installed(client, into)),
        ("engines/starts.json", starts),
        ("engines/patches.json", lambda: _patches(client, into, engines)),
        ("diagnosis.json", lambda: into.add_value(
            "diagnosis.json", client.call(ops.DIAGNOSE, DiagnosisQuery(minutes=MINUTES)))),
        ("jobs.json", lambda: _jobs(client, into)),
        ("events.jsonl", lambda: into.add_lines("events.jsonl", _events(client, into.mask))),
        ("telemetry.jsonl", lambda: _telemetry(client, into)),
    )  # fmt: skip
    for operation in (remote_hosts.HOSTS, endpoint.ROUTES):
        # Their names stand in events, plans and logs.
        with contextlib.suppress(HostError):
            learn_from_value(client.call(operation).model_dump(mode="json"), into.mask)
    for name, add in parts:
        try:
            add()
        except HostError as error:
            into.lack(name, error.problem.sentence())


def tell_of_records(client: ControlClient, into: Collected) -> None:
    """Add the host's own lines and the newest records of ends, which are files where no host is asked."""
    try:
        page = client.call(ops.LOGS, LogQuery(source="host", limit=_LINES))
    except HostError as error:
        into.lack("logs/host.log", error.problem.sentence())
    else:
        into.add_text("logs/host.log", "".join(f"{one.severity.upper()} {one.text}\n" for one in page.lines))
    try:
        for entry in client.call(ops.AUTOPSIES).autopsies[:_AUTOPSIES]:
            record = client.call(ops.AUTOPSY, id=entry.id).record.model_dump(mode="json")
            learn_from_value(record, into.mask)
            into.add_value(f"autopsies/{entry.id}.json", told_autopsy(record))
    except HostError as error:
        into.lack("autopsies", error.problem.sentence())
    for name in ("disks.json", "logs/engines"):
        into.lack(name, f"Only that machine reads it: sndr host shell {client.host}, then sndr diagnostics.")


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


def told_start(kept: dict[str, Any]) -> dict[str, Any]:
    """Return a start as the database keeps it, without lines that quote requests."""
    engine = kept.get("engine")
    return {**kept, "engine": without_quotes(engine)} if isinstance(engine, dict) else dict(kept)


def told_autopsy(record: dict[str, Any]) -> dict[str, Any]:
    """Return the record of an engine's end without who asked it, and without lines that quote requests."""
    found = told_start(record)
    asked = record.get("requests")
    if isinstance(asked, list):
        found["requests"] = [
            {name: value for name, value in one.items() if name != "client_name"}
            for one in asked
            if isinstance(one, dict)
        ]
    return found


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
    learn_from_settings({one.name: one.value for one in page.settings}, into.mask)
    into.add_value("settings.json", page)


def _machine(client: ControlClient, into: Collected) -> None:
    told = client.call(ops.HOST)
    learn_from_value(told.model_dump(mode="json"), into.mask)
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
    told = [one.model_dump(mode="json") for one in newest]
    learn_from_value(told, into.mask)
    into.add_value("jobs.json", list(map(told_job, told)))


def _events(client: ControlClient, mask: Mask) -> list[dict[str, Any]]:
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
        # A machine or a provider that was removed since stands in them alone.
        learn_from_value(event, mask)
        if (told := told_event(event)) is not None:
            kept.append(told)
        reached = event.get("latest") if event.get("kind") in {"reset", "heartbeat"} else event.get("seq")
        if isinstance(reached, int) and reached >= latest:
            break
    return list(kept)


def _telemetry(client: ControlClient, into: Collected) -> None:
    page = client.call(ops.TELEMETRY, TelemetryQuery(since=time.time() - MINUTES * 60))
    into.add_lines("telemetry.jsonl", (one.model_dump(mode="json") for one in page.series))
