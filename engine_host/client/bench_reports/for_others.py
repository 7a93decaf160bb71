"""Reports as others may see them: without keys, names of people and machines, addresses, the home folder."""

from typing import Any, TypeVar

from pydantic import BaseModel

from engine_host.client.diagnostics.mask import Mask
from engine_host.core.diagnosis.secrets import private_variables
from engine_host.protocol.bench.comparison import Caution, LabComparison
from engine_host.protocol.bench.lab import LabEngine, LabRun
from engine_host.protocol.bench.sweeps import SweepReport

T = TypeVar("T", bound=BaseModel)


def run_for_others(run: LabRun) -> LabRun:
    """Return a run to be shared; figures, samples, the model's id and the name of its weights stay."""
    mask = _mask(run)
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
    return bare.model_copy(
        update={"id": run.id, "measuring": None, "samples": tuple(samples), "engine": _engine(bare, run)}
    )


def comparison_for_others(found: LabComparison) -> LabComparison:
    """Return a comparison to be shared."""
    shown = _masked(found, _mask(found.a, found.b))
    a, b = (
        side.model_copy(update={"id": was.id, "engine": _engine(side, was)})
        for side, was in ((shown.a, found.a), (shown.b, found.b))
    )
    doubts = [
        doubt.model_copy(
            update={"text": f"other models: {a.engine.model} and {b.engine.model}"}
            if doubt.caution is Caution.OTHER_MODEL
            else {}
        )
        for doubt in shown.doubts
    ]
    differing = [
        one.model_copy(update={"a": _weights(a.engine), "b": _weights(b.engine)})
        if one.name == "model"
        else one
        for one in shown.differing
    ]
    return shown.model_copy(update={"a": a, "b": b, "doubts": tuple(doubts), "differing": tuple(differing)})


def sweep_for_others(report: SweepReport) -> SweepReport:
    """Return a sweep to be shared."""
    shown = _masked(report, _mask(*report.runs))
    runs = tuple(
        run.model_copy(update={"id": was.id, "engine": _engine(run, was)})
        for run, was in zip(shown.runs, report.runs, strict=True)
    )
    sweep = shown.sweep.model_copy(update={"id": report.sweep.id})
    return shown.model_copy(update={"sweep": sweep, "runs": runs})


def _mask(*runs: LabRun) -> Mask:
    """Return the mask for runs; it knows the variables of their starts, which earlier versions kept whole."""
    mask = Mask.of_this_machine()
    for run in runs:
        mask.know_variables(private_variables(run.engine.settings.get("variables", "")))
    return mask


def _engine(run: LabRun, was: LabRun) -> LabEngine:
    engine = run.engine
    changed: dict[str, Any] = {
        "pid": None,
        "model": _named(engine.model, was.engine.model),
        "model_path": _end_kept(engine.model_path, was.engine.model_path),
    }
    # The path of a socket and the number of a process help nobody elsewhere.
    if engine.address.startswith(("/", "~")):
        changed["address"] = "a socket"
    return engine.model_copy(update=changed)


def _named(shown: str, model: str) -> str:
    """Return the id of a model, by which runs are compared; of one that is a path, its end is as it was."""
    return _end_kept(shown, model) if model.startswith(("/", "~")) else model


def _end_kept(shown: str, path: str) -> str:
    """Return a masked path with its own end: a person's name in that is the name of the weights."""
    _, slash, end = path.rstrip("/").rpartition("/")
    if not slash:
        return path
    # What is masked as a whole has no end, as the home folder itself.
    if "/" not in shown:
        return shown
    return f"{shown.rstrip('/').rpartition('/')[0]}/{end}"


def _weights(engine: LabEngine) -> str:
    return engine.model_path or engine.model


def _masked(value: T, mask: Mask) -> T:
    return type(value).model_validate(mask.value(value.model_dump(mode="json")))
