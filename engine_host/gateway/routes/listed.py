"""The routes that look at the engines, in the form that each client reads: what runs, and what it can do."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from engine_host.gateway.error_answers import invalid
from engine_host.gateway.listing import anthropic, codex, lm_studio, ollama
from engine_host.gateway.listing import props as llamacpp
from engine_host.gateway.openai.listing import find, model_entry, model_list
from engine_host.gateway.routes.rows import Looked

MODEL_PREFIX = "/v1/models/"
LM_STUDIO_PREFIX = "/api/v0/models/"
_MOST_FIELDS = 64


def query_of(text: bytes) -> Mapping[str, str]:
    """Return the fields after a path's question mark. Raises EndpointError(400) for too many."""
    try:
        pairs = parse_qsl(text.decode("latin-1"), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError as error:
        raise invalid(f"The address holds more than {_MOST_FIELDS} fields.") from error
    return dict(pairs)


def health(looked: Looked) -> dict[str, Any]:
    """Tell whether an engine runs, and which are on their way."""
    status = "ok" if looked.targets else "starting" if looked.starting else "no_engine_runs"
    models = [target.name for target in looked.targets]
    return {"status": status, "models": models, "starting": list(looked.starting)}


def models(looked: Looked) -> dict[str, Any]:
    """List the models that can be asked for: for Codex, for Anthropic's clients, and for all others."""
    if "client_version" in looked.query:
        return codex.model_list(looked.known)
    if anthropic.is_asked_for(looked.headers, looked.query):
        return anthropic.model_list(looked.known, looked.query)
    return model_list(looked.known)


def one_model(looked: Looked) -> dict[str, Any]:
    """Tell of one model; raises EndpointError 404 for one that there is not."""
    target = find(looked.known, looked.path.removeprefix(MODEL_PREFIX))
    if anthropic.is_asked_for(looked.headers, looked.query):
        return anthropic.model_entry(target)
    return model_entry(target)


def props(looked: Looked) -> dict[str, Any]:
    """Tell llama.cpp's properties of a model, without path and template; raises EndpointError 404."""
    name = looked.query.get("model")
    return llamacpp.props(looked.known if name else looked.targets, name)


def lm_studio_models(looked: Looked) -> dict[str, Any]:
    """List the models as LM Studio does."""
    return lm_studio.model_list(looked.known)


def lm_studio_model(looked: Looked) -> dict[str, Any]:
    """Tell of one model as LM Studio does; raises EndpointError 404."""
    return lm_studio.model_entry(find(looked.known, looked.path.removeprefix(LM_STUDIO_PREFIX)))


def lm_studio_models_v1(looked: Looked) -> dict[str, Any]:
    """List the models as LM Studio's newer interface does."""
    return lm_studio.model_list_v1(looked.known)


def ollama_version(looked: Looked) -> dict[str, Any]:
    """Tell which version of Ollama's API is spoken."""
    return ollama.version()


def ollama_tags(looked: Looked) -> dict[str, Any]:
    """List the models as Ollama does."""
    return ollama.tags(looked.known)


def ollama_running(looked: Looked) -> dict[str, Any]:
    """List the models as Ollama lists those that are loaded."""
    return ollama.running(looked.targets)


def ollama_show(looked: Looked) -> dict[str, Any]:
    """Tell of one model as Ollama does; raises EndpointError 400, 404."""
    # Older clients write `name`.
    name = looked.body.get("model") or looked.body.get("name")
    if not isinstance(name, str):
        raise invalid("model must be a text: the name of a model that runs.", param="model")
    return ollama.show(ollama.named(looked.known, name))
