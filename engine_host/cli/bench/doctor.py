"""`sndr doctor`: why an engine is slow, and how engines ended by themselves."""

import time
from collections.abc import Sequence
from dataclasses import asdict

import click

from engine_host.cli.autopsy.records import Records, RecordsOfHost, records_of
from engine_host.cli.output import Exit, Output, command
from engine_host.cli.param_types import FiniteRange
from engine_host.cli.start.host import connected
from engine_host.cli.status import no_gpu_lines
from engine_host.cli.text.chosen_host import chosen_host
from engine_host.cli.text.died import died_lines
from engine_host.client.ends import End, ends_of
from engine_host.core.errors import HostError
from engine_host.core.sizes import duration
from engine_host.protocol.bench.diagnosis import TOO_LITTLE, Diagnosis, DiagnosisQuery
from engine_host.protocol.engines import COLD_START, Engine, EngineState
from engine_host.protocol.errors import Fix
from engine_host.protocol.language import tr
from engine_host.protocol.operations import table as ops

_MOST_ENDS = 5


@click.command()
@click.argument("engine", required=False)
@click.option(
    "--minutes",
    type=FiniteRange(0, 44_640, min_open=True),
    default=10.0,
    show_default=True,
    help="How far to look back.",
)
@command("sndr doctor", "sndr doctor qwen3-8b --minutes 5")
def doctor(out: Output, engine: str | None, minutes: float) -> Exit | None:
    """Say why ENGINE, or any that runs, was slow, the gravest cause first; and how engines died.

    Without a host it tells the ends alone, from the records in the data folder.
    """
    try:
        client = connected()
    except HostError as error:
        if engine is not None or chosen_host() or not error.lost:
            raise
        with records_of(out) as records:
            _tell(out, None, (), records)
        return None
    with client:
        found = client.call(ops.DIAGNOSE, DiagnosisQuery(engine=engine, minutes=minutes))
        engines = client.call(ops.ENGINES).engines
        _tell(out, found, engines, RecordsOfHost(client) if engine is None else None)
    return None


def _tell(out: Output, found: Diagnosis | None, engines: tuple[Engine, ...], records: Records | None) -> None:
    """Print what was found; without records only why engines are slow."""
    ends = ends_of(engines, records.page().autopsies)[:_MOST_ENDS] if records is not None else []
    told = ends[0] if ends and not ends[0].lives_again else None
    newest = None
    if told is not None and records is not None:
        remembered = next((one for one in engines if one.id == told.engine), None)
        newest = remembered or records.open(told.record).record.engine
    if out.as_json:
        slow = found.model_dump(mode="json") if found is not None else {}
        failed = None if newest is None else newest.model_dump(mode="json")
        out.record({**slow, "failed": failed, "ends": [asdict(one) for one in ends]})
        return
    slow_lines = _slow_lines(found) if found is not None else []
    earlier = [one for one in (ends if newest is None else ends[1:]) if not one.refused]
    failed_lines = ["", *died_lines(newest, time.time())] if newest is not None else []
    lines = [*slow_lines, *_starting_lines(engines), *failed_lines, *_end_lines(earlier)]
    if not lines:
        lines = ["No engine died that is on record. `sndr run --demo` starts one."]
    out.result({}, lines[1:] if not lines[0] else lines)


def _slow_lines(found: Diagnosis) -> list[str]:
    if not found.busy:
        idle = "No engine runs, so none is slow. `sndr run --demo` starts one."
        return [idle, *no_gpu_lines(found.no_gpu)]
    lines = [_worked(found, name, seconds) for name, seconds in found.busy.items()]
    for number, cause in enumerate(found.causes, start=1):
        lines += [
            f"{number}. {cause.engine + ': ' if cause.engine else ''}{cause.sentence}",
            *_fix_lines(cause.fix),
        ]
    if not found.causes:
        lines.append(_verdict(found))
    lines += [tr("Not measured: {what}.", what=what) for what in found.not_measured]
    lines += _fix_lines(found.instead)
    return lines + no_gpu_lines(found.no_gpu)


def _worked(found: Diagnosis, name: str, seconds: float) -> str:
    """Return how long an engine worked, of the time in which it could."""
    ready = found.since_ready.get(name)
    span = f"last {duration(found.seconds)}" if ready is None else f"{duration(ready)} since it was ready"
    return (
        f"{name} worked for at most {duration(seconds)} of the {span}."
        if seconds
        else f"{name} did not work in the {span}."
    )


def _verdict(found: Diagnosis) -> str:
    """Return what is said where no cause was found."""
    if not any(found.busy.values()):
        return "Ask something (`sndr chat`), and look again."
    judged = [name for name, seconds in found.busy.items() if seconds and name not in found.too_little]
    return "Nothing that was measured slowed it down." if judged else TOO_LITTLE


def _fix_lines(fix: Fix | None) -> list[str]:
    if fix is None:
        return []
    settings = " ".join(f"--set {name}={str(value).lower()}" for name, value in fix.settings.items())
    lines = [f"   {fix.text}{f' ({settings})' if settings else ''}"]
    return [*lines, f"   $ {fix.command}"] if fix.command else lines


def _starting_lines(engines: tuple[Engine, ...]) -> list[str]:
    starting = [one for one in engines if one.state in (EngineState.PREPARING, EngineState.STARTING)]
    said = [
        f"{one.name} is starting and has not failed{f': {one.stages[-1].name}' if one.stages else ''}."
        for one in starting
    ]
    return ["", *said, COLD_START] if said else []


def _end_lines(ends: Sequence[End]) -> list[str]:
    if not ends:
        return []
    now = time.time()
    lines = ["", "Earlier ends, the newest first:"]
    for end in ends:
        again = " It was started again, and runs." if end.lives_again else ""
        lines += [f"  {end.age(now)}: {end.name} ({end.engine}): {end.sentence}{again}"]
        lines += [f"    $ sndr autopsy {end.record or end.engine}"]
    return lines
