"""Sweeps by name, and what their runs say of each value against the first."""

import contextlib
import secrets
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from engine_host.bench.comparison import compare_apart
from engine_host.bench.kept.database import (
    SWEEP_ID,
    SWEEPS,
    LabDatabase,
    damaged_files,
    not_readable,
    opened,
    opened_to_read,
)
from engine_host.bench.kept.runs import NEWEST
from engine_host.bench.lab.comparing import verdict_of
from engine_host.bench.lab.figures import RATES, speeds, values_of
from engine_host.core.errors import HostError
from engine_host.protocol.bench.lab import LabRun, PartResult, Quantity, Standing
from engine_host.protocol.bench.sweeps import LabSweep, SweepChange, SweepPage, SweepReport, SweepSamples
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr


def new_id(kind: str, now: float) -> str:
    """Return a name that sorts by time and that nobody has."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{kind}-{secrets.token_hex(2)}"


def save(folder: Path, sweep: LabSweep) -> None:
    """Keep a sweep, in place of what was known of it. Raises HostError(disk_full, not_writable)."""
    with opened(folder) as database:
        database.save_sweep(sweep)


def can_keep(folder: Path, sweep: LabSweep) -> None:
    """Make sure that a sweep could be kept, before an engine is stopped for it.

    Raises HostError(disk_full), HostError(not_writable) also where the file is damaged.
    """
    with opened(folder) as database:
        database.try_out(sweep)


def page(folder: Path) -> SweepPage:
    """Return all sweeps, newest first; a file that cannot be read is named."""
    found, unreadable, ids = [], [], list[str]()
    with opened_to_read(folder) as database:
        if database is not None:
            ids = database.ids(sweeps=True)
            for name in ids:
                try:
                    found.append(database.sweep(name))
                except ValueError:
                    unreadable.append(name)
    damaged = damaged_files(folder / SWEEPS, ids, SWEEP_ID)
    return SweepPage(sweeps=tuple(found), unreadable=(*unreadable, *damaged))


def report(folder: Path, wanted: str) -> SweepReport:
    """Return a sweep by its name, a beginning or an end of it, or the newest as `latest`, with its runs.

    Raises HostError(not_found), and HostError(bad_request) for several or a damaged file.
    """
    with opened_to_read(folder) as database:
        ids = [] if database is None else database.ids(sweeps=True)
        found = ids[:1] if wanted == NEWEST else [one for one in ids if one == wanted]
        if not found and wanted:
            found = [one for one in ids if one.startswith(wanted) or one.endswith(f"-{wanted}")]
        if not ids:
            raise HostError(
                Reason.NOT_FOUND,
                "No sweep of speculation, kv or patch was kept here yet.",
                cause=tr("Those of concurrency and context are runs: `sndr bench list`."),
                fix=Fix(text="Sweep first.", command="sndr bench sweep --help"),
            )
        if len(found) != 1 or database is None:
            raise HostError(
                Reason.BAD_REQUEST if found else Reason.NOT_FOUND,
                tr("{count} sweeps begin or end with {wanted}.", count=len(found), wanted=wanted)
                if found
                else tr("There is no sweep {wanted}.", wanted=wanted),
                fix=Fix(text="See what there is.", command="sndr bench sweeps"),
            )
        try:
            sweep = database.sweep(found[0])
        except ValueError as error:
            raise not_readable("sweep", found[0], error) from error
        runs = _runs_of(sweep, database)
    bare = tuple(run.model_copy(update={"samples": ()}) for run in runs.values())
    return SweepReport(
        sweep=sweep,
        runs=bare,
        changes=tuple(_changes(sweep, runs)),
        samples=tuple(_samples(sweep, runs)),
    )


def _samples(sweep: LabSweep, runs: dict[str, LabRun]) -> Iterator[SweepSamples]:
    """Yield the values behind the figures of each start; of what was not measured there are none."""
    for arm in sweep.arms:
        if (run := runs.get(arm.run)) is None:
            continue
        for part in run.parts:
            told = {
                f"{figure.quantity}_{'tokens_per_second' if figure.quantity in RATES else 'seconds'}": tuple(
                    values_of(figure.quantity, part, run.samples)
                )
                for figure in part.figures
                if figure.value is not None
            }
            yield SweepSamples.model_validate({"value": arm.value, "run": arm.run, "part": part.name, **told})


def _runs_of(sweep: LabSweep, database: LabDatabase) -> dict[str, LabRun]:
    """Return the runs of a sweep but those that were removed since."""
    kept = set(database.ids())
    runs: dict[str, LabRun] = {}
    for arm in sweep.arms:
        if arm.run in kept:
            with contextlib.suppress(ValueError):
                runs[arm.run] = database.run(arm.run)
    return runs


def _changes(sweep: LabSweep, runs: dict[str, LabRun]) -> list[SweepChange]:
    """Compare each value with the first: the rounds of all its runs with those of the first's."""
    of_value = {
        value: [runs[arm.run] for arm in sweep.arms if arm.value == value and arm.run in runs]
        for value in sweep.values
    }
    first, *others = sweep.values
    base = of_value[first]
    made = []
    for value in others:
        for part in base[0].parts if base and of_value[value] else ():
            for quantity in Quantity:
                made.append(_change(value, part.name, quantity, base, of_value[value]))
    return [one for one in made if one is not None]


def _change(
    value: str, part: str, quantity: Quantity, base: Sequence[LabRun], other: Sequence[LabRun]
) -> SweepChange | None:
    """Return one verdict; None for what neither side measures."""
    sides: list[list[float]] = []
    for runs in (base, other):
        rounds: list[float] = []
        for run in runs:
            result = next((one for one in run.parts if one.name == part), None)
            if result is None or (why := _unusable(result, quantity)) is None:
                return None
            if why:
                return SweepChange(
                    value=value,
                    part=part,
                    quantity=quantity,
                    verdict=None,
                    words=tr("not judged: {why}", why=why),
                )
            rounds += speeds(quantity, result, run.samples).values()
        sides.append(rounds)
    return SweepChange(
        value=value, part=part, quantity=quantity, **verdict_of(compare_apart(sides[0], sides[1]))
    )


def _unusable(result: PartResult, quantity: Quantity) -> str | None:
    """Return why a figure is not judged, empty where it is, and None where there is none."""
    figure = next((one for one in result.figures if one.quantity is quantity), None)
    if figure is None or figure.standing is Standing.NOT_MEASURED:
        return None
    return f"struck: {figure.why}" if figure.standing is Standing.STRUCK else ""
