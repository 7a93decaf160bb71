"""Say what is there at a first start: models by their place, presets that work, the one to begin with."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine_host.core.sizes import size_text
from engine_host.protocol.bench.lab import RunBench, WorkloadName
from engine_host.protocol.language import tr
from engine_host.protocol.launch.fit import Verdict
from engine_host.protocol.models import ModelFile, ModelOrigin
from engine_host.protocol.presets import PresetVerdict

ROUNDS = 3
"""The measured rounds of the first measurement: enough for a median, and soon over."""
IN_PLACE = tr("They are used where they are: nothing is copied, moved or changed.")
_WORKS = {Verdict.FITS, Verdict.TIGHT}


@dataclass(frozen=True)
class ModelPlace:
    """The models of one place; `startable` are those without a problem, `size` is of all, in bytes."""

    name: str
    count: int
    startable: int
    size: int

    @property
    def about(self) -> str:
        """The number of models, their size, and how many of them cannot be used."""
        parts = [f"{self.count:,} {'model' if self.count == 1 else 'models'}", size_text(self.size)]
        if broken := self.count - self.startable:
            parts.append(tr("{broken} cannot be used", broken=f"{broken:,}"))
        return ", ".join(parts)


def places(models: Sequence[ModelFile]) -> tuple[ModelPlace, ...]:
    """Return the places that models were found in, as they are listed: bundled first."""
    found: dict[str, list[ModelFile]] = {}
    for model in models:
        name = tr("with this program") if model.origin is ModelOrigin.BUNDLED else model.found_in
        found.setdefault(name, []).append(model)
    return tuple(
        ModelPlace(name, len(here), sum(one.problem is None for one in here), sum(one.size for one in here))
        for name, here in found.items()
    )


def only_bundled(models: Sequence[ModelFile]) -> bool:
    """Return True where no model but the program's own was found."""
    return all(model.origin is ModelOrigin.BUNDLED for model in models)


def no_others() -> str:
    """Return where models were looked for, and that there were none but the program's own."""
    return tr(
        "No other models were found. While models.other_programs is on, the folders of Hugging Face, "
        "LM Studio, Ollama and llama.cpp are searched, and always those of models.folders."
    )


def recommended(models: Sequence[ModelFile]) -> ModelFile | None:
    """Return the model to begin with: the bundled one, which runs on any machine and needs no network."""
    bundled = (one for one in models if one.origin is ModelOrigin.BUNDLED and one.problem is None)
    # It is there as a checkpoint too, which only vLLM runs.
    return next((one for one in bundled if one.format == "GGUF"), None)


def ready_presets(verdicts: Sequence[PresetVerdict]) -> tuple[str, ...]:
    """Return the presets that fit and lack nothing, the best first."""
    return tuple(one.preset for one in verdicts if one.verdict in _WORKS and one.model and not one.missing)


def presets_sentence(verdicts: Sequence[PresetVerdict]) -> str:
    """Return how many presets fit on the machine, and how many of them could start at once."""
    fits = sum(one.verdict in _WORKS for one in verdicts)
    ready = ready_presets(verdicts)
    if not fits:
        return tr(
            "None of the {verdicts} presets fits here; models of yours may: Fit says how large.",
            verdicts=f"{len(verdicts):,}",
        )
    values = {"fits": f"{fits:,}", "verdicts": f"{len(verdicts):,}"}
    if not ready:
        return tr("{fits} of {verdicts} presets fit here; the models of none of them are here yet.", **values)
    if len(ready) == 1:
        return tr("{fits} of {verdicts} presets fit here; ready to start: {ready}.", **values, ready=ready[0])
    return tr(
        "{fits} of {verdicts} presets fit here; ready to start: {ready} and {more} more.",
        **values,
        ready=ready[0],
        more=f"{len(ready) - 1:,}",
    )


def first_measurement(engine: str) -> RunBench:
    """Return the short measurement of an engine that a first start ends with."""
    return RunBench(workload=WorkloadName.QUICK, engine=engine, rounds=ROUNDS)
