"""Sweeps on disk, and what their runs say of each value against the first."""

import re
import secrets
import time
from collections.abc import Sequence
from pathlib import Path

from engine_host.bench.comparison import compare_apart
from engine_host.bench.lab import store
from engine_host.bench.lab.comparing import verdict_of
from engine_host.bench.lab.figures import speeds
from engine_host.core import atomic_file
from engine_host.core.errors import HostError
from engine_host.core.outside import files
from engine_host.protocol.bench.lab import LabRun, PartResult, Quantity, Standing
from engine_host.protocol.bench.sweeps import LabSweep, SweepChange, SweepPage, SweepReport
from engine_host.protocol.errors import Fix, Reason

_FOLDER = "sweeps"
_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[a-z]+-[0-9a-f]{4}")
_MOST = 4 << 20


def new_id(kind: str, now: float) -> str:
    """Return a name that sorts by time and that nobody has."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{kind}-{secrets.token_hex(2)}"


def save(folder: Path, sweep: LabSweep) -> None:
    """Write a sweep, in place of what was known of it. Raises HostError(disk_full, not_writable)."""
    atomic_file.write(folder / _FOLDER / f"{sweep.id}.json", sweep.model_dump_json())


def page(folder: Path) -> SweepPage:
    """Return all sweeps, newest first; a file that cannot be read is named."""
    found, unreadable = [], []
    for name in _ids(folder):
        try:
            found.append(_read(folder, name))
        except (OSError, ValueError):
            unreadable.append(f"{name}.json")
    return SweepPage(sweeps=tuple(found), unreadable=tuple(unreadable))


def report(folder: Path, wanted: str) -> SweepReport:
    """Return a sweep by its name, a beginning or an end of it, or the newest as `latest`, with its runs.

    Raises HostError(not_found), and HostError(bad_request) for several or a damaged file.
    """
    ids = _ids(folder)
    found = ids[:1] if wanted == store.NEWEST else [one for one in ids if one == wanted]
    if not found and wanted:
        found = [one for one in ids if one.startswith(wanted) or one.endswith(f"-{wanted}")]
    if len(found) != 1:
        raise HostError(
            Reason.BAD_REQUEST if found else Reason.NOT_FOUND,
            f"{len(found)} sweeps begin or end with {wanted}." if found else f"There is no sweep {wanted}.",
            fix=Fix(text="See what there is.", command="sndr bench sweeps"),
        )
    try:
        sweep = _read(folder, found[0])
    except (OSError, ValueError) as error:
        raise HostError(
            Reason.BAD_REQUEST,
            f"The sweep {found[0]} cannot be read.",
            cause="Its file is damaged, or was written by a newer version.",
            evidence={"error": str(error)[:400]},
        ) from error
    runs: dict[str, LabRun] = {}
    for arm in sweep.arms:
        if arm.run:
            try:
                runs[arm.run] = store.find(folder, arm.run)
            except HostError:
                # It was removed since.
                continue
    bare = tuple(run.model_copy(update={"samples": ()}) for run in runs.values())
    return SweepReport(sweep=sweep, runs=bare, changes=tuple(_changes(sweep, runs)))


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
                    value=value, part=part, quantity=quantity, verdict=None, words=f"not judged: {why}"
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


def _ids(folder: Path) -> list[str]:
    place = folder / _FOLDER
    names = [path.stem for path in place.glob("*.json")] if place.is_dir() else []
    return sorted((name for name in names if _ID.fullmatch(name)), reverse=True)


def _read(folder: Path, name: str) -> LabSweep:
    """Raises OSError, ValueError (pydantic's own error is one)."""
    sweep = LabSweep.model_validate_json(files.read(folder / _FOLDER / f"{name}.json", _MOST))
    if sweep.id != name or not sweep.values:
        raise ValueError("it is not the sweep of its name")
    return sweep
