"""Runs by name: kept, found, listed, marked as baselines and removed."""

import secrets
import time
from collections.abc import Sequence
from pathlib import Path

from engine_host.bench.conditions.pins import Pins, with_staleness
from engine_host.bench.kept.database import (
    LabDatabase,
    damaged_files,
    not_readable,
    opened,
    opened_to_read,
)
from engine_host.core.errors import HostError
from engine_host.core.likely_causes import unwritable_folder
from engine_host.protocol.bench.lab import LabEngine, LabKept, LabPage, LabRun
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

NEWEST = "latest"
"""The name of the newest run, where one is asked for."""


def folder_of(data: str | Path) -> Path:
    """Return where the runs of a data folder are."""
    return Path(data) / "bench"


def new_id(workload: str, now: float) -> str:
    """Return a name that sorts by time and that nobody has."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{workload}-{secrets.token_hex(2)}"


def save(folder: Path, run: LabRun) -> LabRun:
    """Keep a run, in place of what was known of it; as it is kept, with the names of those that went for it.

    Raises HostError(disk_full), HostError(not_writable).
    """
    with opened(folder) as database:
        return database.save_run(run)


def can_keep(folder: Path, run: LabRun) -> None:
    """Make sure that a run could be kept, before it is measured.

    Raises HostError(disk_full), HostError(not_writable) also where the file is damaged.
    """
    with opened(folder) as database:
        database.try_out(run)


def kept(runs: Sequence[LabRun]) -> LabKept:
    """Return what is kept of runs that ended: nothing where nothing was asked."""
    return LabKept(
        ids=tuple(run.id for run in runs if run.samples),
        complete=all(run.complete for run in runs),
        ended_by=runs[0].ended_by,
        cut=runs[0].cut,
    )


def page(folder: Path, now: Sequence[Pins] = ()) -> LabPage:
    """Return all runs without their samples, newest first; a file that cannot be read is named.

    Each has what moved since it was measured: towards what runs `now`, else towards the newest run.
    """
    runs, unreadable, ids = [], [], list[str]()
    with opened_to_read(folder) as database:
        if database is not None:
            ids = database.ids()
            for name in ids:
                try:
                    runs.append(database.run(name, samples=False))
                except ValueError:
                    unreadable.append(name)
    return LabPage(runs=with_staleness(runs, now), unreadable=(*unreadable, *damaged_files(folder, ids)))


def mark(folder: Path, wanted: str, *, on: bool) -> None:
    """Make a run the baseline of its subject, instead of another, or no baseline any more.

    Raises HostError(not_found), HostError(bad_request), HostError(not_writable), and HostError(conflict) for
    a run that runs, is partial or struck: nothing is held to that.
    """
    run = find(folder, wanted)
    if on and (run.struck or not run.complete):
        state = "running" if run.measuring else "struck" if run.struck else "partial"
        raise HostError(
            Reason.CONFLICT,
            tr("{run} is {state}, so it cannot be a baseline.", run=run.id, state=state),
            cause="Later runs are compared with it, so all of its figures must count.",
            fix=Fix(text="Measure again.", command=f"sndr bench run {run.workload}"),
        )
    same = [one.id for one in page(folder).runs if one.baseline and one.subject == run.subject]
    with opened(folder) as database:
        database.mark(run, same if on else [], on=on)


def find(folder: Path, wanted: str) -> LabRun:
    """Return a run by its name, by a beginning or an end that no other has, or the newest as `latest`.

    Raises HostError(not_found), and HostError(bad_request) for a beginning of several or a damaged file.
    """
    with opened_to_read(folder) as database:
        name = _name(folder, database, wanted)
        try:
            if database is None:
                raise ValueError("it is a file that an earlier version wrote")
            return database.run(name)
        except ValueError as error:
            raise not_readable("run", name, error) from error


def find_cut(folder: Path, wanted: str, engine: LabEngine, asked_hash: str) -> LabRun:
    """Return a run that was cut short, to go on with it by the same questions to the same model.

    Raises what `find` raises, and HostError(bad_request) for one that cannot be gone on with.
    """
    run = find(folder, wanted)
    why = ""
    if run.complete:
        why = tr("It is complete.")
    elif run.measuring:
        why = tr("It is being measured now.")
    elif run.memory or run.turns_with:
        why = tr("A soak, and two in turns, are measured in one go.")
    elif run.workload_hash != asked_hash:
        why = tr("It asked something else: name the same workload and the same parts.")
    elif (run.engine.model, run.engine.address) != (engine.model, engine.address):
        why = tr("It was of {model} at {address}.", model=run.engine.model, address=run.engine.address)
    if why:
        raise HostError(
            Reason.BAD_REQUEST,
            tr("The run {run} cannot be gone on with.", run=run.id),
            cause=why,
            fix=Fix(text="See what it was.", command=f"sndr bench report {run.id}"),
            evidence={"run": run.id},
        )
    return run


def remove(folder: Path, wanted: str) -> None:
    """Delete a run, also one that cannot be read.

    Raises HostError(not_found), HostError(bad_request) for a beginning of several, HostError(not_writable),
    and HostError(conflict) for one that runs: it would be kept again, with its next part.
    """
    with opened_to_read(folder) as database:
        name = _name(folder, database, wanted)
        if database is not None:
            if database.is_running(name):
                raise HostError(
                    Reason.CONFLICT,
                    tr("{run} is being measured now, so it cannot be removed.", run=name),
                    fix=Fix(text="Let it end, or cancel it.", command="sndr jobs"),
                    evidence={"run": name},
                )
            database.remove_run(name)
    path = folder / f"{name}.json"
    try:
        # Of an earlier version, and damaged: the others were moved into the data base.
        path.unlink(missing_ok=True)
    except OSError as error:
        raise HostError(
            Reason.NOT_WRITABLE,
            tr("The run {stem} cannot be removed: {error}.", stem=path.stem, error=error.strerror or error),
            cause=unwritable_folder(),
            fix="May you write in that folder?",
            evidence={"path": str(path), "errno": error.errno},
        ) from error


def _name(folder: Path, database: LabDatabase | None, wanted: str) -> str:
    """Return the one run that is meant. Raises HostError(not_found), HostError(bad_request)."""
    ids = [] if database is None else database.ids()
    ids = sorted({*ids, *(name.removesuffix(".json") for name in damaged_files(folder, ids))}, reverse=True)
    found = ids[:1] if wanted == NEWEST else [one for one in ids if one == wanted]
    if not found and wanted:
        found = [one for one in ids if one.startswith(wanted) or one.endswith(f"-{wanted}")]
    if not found:
        raise HostError(
            Reason.NOT_FOUND,
            tr("There is no run {wanted}.", wanted=wanted) if ids else "Nothing was measured here yet.",
            cause="It was deleted, or measured on another machine or by another user." if ids else "",
            fix=Fix(text="See what there is.", command="sndr bench list")
            if ids
            else Fix(text="Measure first.", command="sndr bench run quick"),
        )
    if len(found) > 1:
        raise HostError(
            Reason.BAD_REQUEST,
            tr(
                "{count} runs begin or end with {wanted}: {found}.",
                count=len(found),
                wanted=wanted,
                found=", ".join(found[:4]),
            ),
            fix=Fix(text="Give the whole name.", command="sndr bench list"),
        )
    return found[0]
