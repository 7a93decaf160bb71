"""A name that is no model and no preset: what may have been meant, of both."""

from engine_host.client.sync import ControlClient
from engine_host.core.did_you_mean import near_names
from engine_host.core.errors import HostError
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.operations import table as ops


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
    near = near_names(typed, presets.union(model.id for model in listed), 3)
    if not near or any(typed in {model.id, model.name} for model in listed):
        return error
    named = [f"{'the preset' if name in presets else 'the model'} {name}" for name in near]
    first = near[0]
    verb = "launch" if first in presets else "run"
    return _with_fix(
        error, Fix(text=tr("Did you mean {named}?", named=" or ".join(named)), command=f"sndr {verb} {first}")
    )


def _with_fix(error: HostError, fix: Fix) -> HostError:
    return HostError.from_problem(error.problem.model_copy(update={"fix": fix}))
