"""The routes that look at the engines: the models, each of them, and whether anything can answer."""

from typing import Any

from engine_host.gateway.openai.listing import find, model_entry, model_list
from engine_host.gateway.routes.rows import Looked

MODEL_PREFIX = "/v1/models/"


def health(looked: Looked) -> dict[str, Any]:
    """Tell whether an engine runs, and which are on their way."""
    status = "ok" if looked.targets else "starting" if looked.starting else "no_engine_runs"
    models = [target.name for target in looked.targets]
    return {"status": status, "models": models, "starting": list(looked.starting)}


def models(looked: Looked) -> dict[str, Any]:
    """List the models that run."""
    return model_list(looked.targets)


def one_model(looked: Looked) -> dict[str, Any]:
    """Tell of one model; raises EndpointError 404 for one that does not run."""
    return model_entry(find(looked.targets, looked.path.removeprefix(MODEL_PREFIX)))
