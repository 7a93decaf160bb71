"""Reports as others may see them: without keys, names of people and machines, addresses, the home folder."""

from typing import Any, TypeVar

from pydantic import BaseModel

from engine_host.client.diagnostics.mask import Mask
from engine_host.protocol.bench.comparison import LabComparison
from engine_host.protocol.bench.lab import LabRun
from engine_host.protocol.bench.sweeps import SweepReport

T = TypeVar("T", bound=BaseModel)


def run_for_others(run: LabRun) -> LabRun:
    """Return a run to be shared; figures, samples and the model's id stay as they are."""
    mask = Mask.of_this_machine()
    bare = _masked(run.model_copy(update={"samples": ()}), mask)
    samples = [
        sample.model_copy(
            update={
                # As the name of its part is shown, by which it is found.
                "part": mask.text(sample.part, "name"),
                "text": mask.text(sample.text),
                "error": mask.text(sample.error),
            }
        )
        for sample in run.samples
    ]
    return bare.model_copy(update={"id": run.id, "samples": tuple(samples), "engine": _engine(bare)})


def comparison_for_others(found: LabComparison) -> LabComparison:
    """Return a comparison to be shared."""
    shown = _masked(found, Mask.of_this_machine())
    sides = {
        name: side.model_copy(update={"id": was.id, "engine": _engine(side)})
        for name, side, was in (("a", shown.a, found.a), ("b", shown.b, found.b))
    }
    return shown.model_copy(update=sides)


def sweep_for_others(report: SweepReport) -> SweepReport:
    """Return a sweep to be shared."""
    shown = _masked(report, Mask.of_this_machine())
    return shown.model_copy(update={"sweep": shown.sweep.model_copy(update={"id": report.sweep.id})})


def _engine(run: LabRun) -> Any:
    engine = run.engine
    # The path of a socket and the number of a process help nobody elsewhere.
    socket = engine.address.startswith(("/", "~"))
    return engine.model_copy(update={"pid": None, **({"address": "a socket"} if socket else {})})


def _masked(value: T, mask: Mask) -> T:
    return type(value).model_validate(mask.value(value.model_dump(mode="json")))
