"""`sndr doctor`: why an engine is slow, and why the last start failed."""

import click

from engine_host.cli.output import Exit, Output, command, problem_lines
from engine_host.cli.start.host import connected
from engine_host.core.sizes import duration
from engine_host.protocol.bench.diagnosis import Diagnosis, DiagnosisQuery, SlowCause
from engine_host.protocol.engines import COLD_START, Engine, EngineState
from engine_host.protocol.operations import table as ops


@click.command()
@click.argument("engine", required=False)
@click.option(
    "--minutes",
    type=click.FloatRange(0, 44_640, min_open=True),
    default=10.0,
    show_default=True,
    help="How far to look back.",
)
@command
def doctor(out: Output, engine: str | None, minutes: float) -> Exit | None:
    """Say why ENGINE, or any that runs, was slow, the gravest cause first; and why the last start failed."""
    with connected() as client:
        found = client.call(ops.DIAGNOSE, DiagnosisQuery(engine=engine, minutes=minutes))
        engines = client.call(ops.ENGINES).engines
    failed = _last_failed(engines) if engine is None else None
    if out.as_json:
        out.record(
            {
                **found.model_dump(mode="json"),
                "failed": None if failed is None else failed.model_dump(mode="json"),
            }
        )
        return None
    out.result(found, [*_slow_lines(found), *_starting_lines(engines), *_failed_lines(failed)])
    return None


def _last_failed(engines: tuple[Engine, ...]) -> Engine | None:
    """Return the newest start if it failed."""
    newest = max(engines, key=lambda engine: engine.created_at, default=None)
    return newest if newest is not None and newest.state is EngineState.FAILED else None


def _slow_lines(found: Diagnosis) -> list[str]:
    if not found.busy:
        return ["No engine runs, so none is slow. `sndr run --demo` starts one."]
    lines = [
        f"{name} worked {duration(seconds)} of the last {duration(found.seconds)}."
        if seconds
        else f"{name} did not work in the last {duration(found.seconds)}."
        for name, seconds in found.busy.items()
    ]
    for number, cause in enumerate(found.causes, start=1):
        lines += [
            f"{number}. {cause.engine + ': ' if cause.engine else ''}{cause.sentence}",
            *_fix_lines(cause),
        ]
    if not found.causes:
        worked = any(found.busy.values())
        lines.append(
            "Nothing that was measured slowed it down." if worked else "Ask something, and look again."
        )
    lines += [f"Not measured: {what}." for what in found.not_measured]
    return lines


def _fix_lines(cause: SlowCause) -> list[str]:
    if cause.fix is None:
        return []
    settings = " ".join(f"--set {name}={str(value).lower()}" for name, value in cause.fix.settings.items())
    lines = [f"   {cause.fix.text}{f' ({settings})' if settings else ''}"]
    return [*lines, f"   $ {cause.fix.command}"] if cause.fix.command else lines


def _starting_lines(engines: tuple[Engine, ...]) -> list[str]:
    starting = [one for one in engines if one.state in (EngineState.PREPARING, EngineState.STARTING)]
    said = [
        f"{one.name} is starting and has not failed{f': {one.stages[-1].name}' if one.stages else ''}."
        for one in starting
    ]
    return ["", *said, COLD_START] if said else []


def _failed_lines(engine: Engine | None) -> list[str]:
    if engine is None or engine.problem is None:
        return []
    lines = ["", f"The last start, {engine.name} ({engine.id}), failed:", *problem_lines(engine.problem)]
    if engine.last_lines:
        lines += ["  What its log says:", *(f"    {line}" for line in engine.decisive_lines)]
    # What died with a process has a record; a start that was refused before has none.
    record = [f"  $ sndr autopsy {engine.id}"] if engine.stages else []
    return [*lines, f"  $ sndr logs {engine.id}", *record]
