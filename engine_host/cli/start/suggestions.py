"""A name that is no model and no preset: what may have been meant, of both."""

import re

from engine_host.client.sync import ControlClient
from engine_host.core.did_you_mean import near_names
from engine_host.core.errors import HostError
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.fit import FitRequest, Verdict
from engine_host.protocol.operations import table as ops
from engine_host.protocol.presets import JudgePresets

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def with_near_names(client: ControlClient, error: HostError, typed: str) -> HostError:
    """The same error with the presets and models whose names are near; any other error as it is."""
    problem = error.problem
    absent = problem.reason is Reason.MODEL_FILE_MISSING and problem.evidence.get("wanted") == typed
    if not absent and not (problem.reason is Reason.NOT_FOUND and problem.evidence.get("preset") == typed):
        return error
    presets = {item.preset.id for item in client.call(ops.PRESETS).presets}
    if typed in presets:
        return _with_fix(error, Fix(text="Start the preset.", command=f"sndr launch {typed}"))
    listed = client.call(ops.MODELS).models
    if absent and (fetched := _to_fetch(client, typed)) is not None:
        return _with_fix(error, fetched)
    presets = _that_work(client, presets, typed)
    near = near_names(typed, presets.union(model.id for model in listed), 3)
    if not near or any(typed in {model.id, model.name} for model in listed):
        return error
    named = [f"{'the preset' if name in presets else 'the model'} {name}" for name in near]
    first = near[0]
    verb = "launch" if first in presets else "run"
    return _with_fix(
        error, Fix(text=tr("Did you mean {named}?", named=" or ".join(named)), command=f"sndr {verb} {first}")
    )


def _to_fetch(client: ControlClient, typed: str) -> Fix | None:
    """The download of a model of the catalogue as it suits this machine, or of a repository."""
    try:
        entries = client.call(ops.CATALOG).models
        report = client.call(ops.FIT, FitRequest(model=typed))
    except HostError:
        return _of_repository(typed)
    name, _, variant_id = report.model.partition("/")
    entry = next((one for one in entries if one.id == name), None)
    variant = entry.variant(variant_id) if entry is not None else None
    if entry is None or variant is None or variant.repository is None:
        return _of_repository(typed)
    command = f"sndr models download {variant.repository}"
    if variant.format == "gguf":
        plain = " " not in variant.quantization
        command += f" --quant {variant.quantization if plain else variant.files[0].name}"
    text = tr(
        "{title} is in the catalogue and not on this machine. Download it, then start it by the name that "
        "`sndr models` lists; `sndr fit {name}` tells what it needs here.",
        title=entry.title,
        name=report.model,
    )
    return Fix(text=text, command=command)


def _of_repository(typed: str) -> Fix | None:
    """The download of organisation/model; None for another name."""
    if not _REPOSITORY.fullmatch(typed):
        return None
    text = tr(
        "If it is a model on Hugging Face, download it; then start it by the name that `sndr models` lists."
    )
    return Fix(text=text, command=f"sndr models download {typed}")


def _that_work(client: ControlClient, presets: set[str], typed: str) -> set[str]:
    """Of the presets whose names are near only those that work on this machine, where that is known."""
    if not near_names(typed, presets):
        return presets
    try:
        found = client.call(ops.JUDGE_PRESETS, JudgePresets()).verdicts
    except HostError:
        return presets
    none = {one.preset for one in found if one.verdict in {Verdict.CANNOT_RUN, Verdict.DOES_NOT_FIT}}
    return presets - none


def _with_fix(error: HostError, fix: Fix) -> HostError:
    return HostError.from_problem(error.problem.model_copy(update={"fix": fix}))
