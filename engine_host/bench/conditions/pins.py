"""The pins of a run: engine, patches, driver, GPUs and weights. A run is stale when one of them moved."""

from collections.abc import Sequence

from engine_host.bench.lab.comparing import weights_of
from engine_host.protocol.bench.lab import LabEngine, LabMachine, LabRun

Pins = tuple[LabEngine, LabMachine]


def with_staleness(runs: Sequence[LabRun], now: Sequence[Pins] = ()) -> tuple[LabRun, ...]:
    """Return runs, newest first, each with what moved since.

    It is held to what runs now with the same model and kind of engine, else to the newest run of them. Of an
    address nothing is known, and so nothing can move.
    """
    newest: dict[tuple[str, str], Pins] = {}
    for engine, machine in now:
        newest.setdefault(_key(engine), (engine, machine))
    for run in runs:
        if run.engine.id:
            newest.setdefault(_key(run.engine), (run.engine, run.machine))
    return tuple(
        run.model_copy(
            update={
                "stale": moved((run.engine, run.machine), newest[_key(run.engine)]) if run.engine.id else ""
            }
        )
        for run in runs
    )


def moved(then: Pins, now: Pins) -> str:
    """Return which pins are others now, in words; empty where none is."""
    (engine, machine), (other, here) = then, now
    found = [
        f"{name} {before or 'unknown'} \u2192 {after or 'unknown'}"
        for name, before, after in (
            (engine.engine, engine.version, other.version),
            ("driver", machine.driver, here.driver),
            ("GPUs", ", ".join(machine.gpus), ", ".join(here.gpus)),
            ("weights", weights_of(engine), weights_of(other)),
        )
        if before != after
    ]
    for name in sorted({*engine.patches} ^ {*other.patches}):
        found.append(f"patch {name} {'off' if name in engine.patches else 'on'}")
    return ", ".join(found)


def _key(engine: LabEngine) -> tuple[str, str]:
    return engine.engine, engine.model
