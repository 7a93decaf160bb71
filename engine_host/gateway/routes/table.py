"""The routes of the endpoint, a row each, and the errors for what is none."""

from typing import Any

from engine_host.gateway import error_answers as faults
from engine_host.gateway import reranking
from engine_host.gateway.llamacpp import request as of_llamacpp
from engine_host.gateway.ollama import fields as of_ollama
from engine_host.gateway.openai import bodies
from engine_host.gateway.routes import agents, calls, listed, native, ollama, openapi
from engine_host.gateway.routes.rows import Ask, Look, Looked, Post
from engine_host.gateway.tokens import fields, translate
from engine_host.protocol.endpoint.keys import Permission
from engine_host.protocol.errors import Reason

_ELSEWHERE = "Models are fetched, started and stopped in SNDR Control Center, or with: sndr run MODEL"
_NO_ENGINE = "No engine here answers it."
_OF_ENGINE = "It shows or changes the engine itself; see sndr status and sndr logs."
POSTS = {
    "/v1/chat/completions": Post(bodies.check_chat, calls.chat, events=True),
    "/v1/completions": Post(bodies.check_completion, calls.completion, events=True),
    "/v1/embeddings": Post(bodies.check_embeddings, calls.embeddings),
    "/v1/chat/completions/input_tokens": Post(bodies.check_chat, agents.count_chat),
    "/v1/responses": Post(bodies.check_responses, agents.responses, events=True),
    "/v1/responses/input_tokens": Post(bodies.check_responses, agents.count_responses),
    "/v1/messages": Post(bodies.check_message, agents.messages, events=True),
    "/v1/messages/count_tokens": Post(bodies.check_chat, agents.count_messages),
    "/v1/rerank": Post(reranking.check, calls.rerank),
    "/rerank": Post(reranking.check, calls.rerank),
    "/v1/reranking": Post(reranking.check, calls.rerank),
    "/reranking": Post(reranking.check, calls.rerank),
    "/completion": Post(of_llamacpp.check_completion, native.completion, events=True),
    "/infill": Post(of_llamacpp.check_infill, native.infill, events=True),
    "/api/chat": Post(of_ollama.check_chat, ollama.chat),
    "/api/generate": Post(of_ollama.check_generate, ollama.generate),
    "/api/embed": Post(of_ollama.check_embed, ollama.embed),
    "/api/embeddings": Post(of_ollama.check_embed, ollama.embed),
}
SHORT = {
    short: path
    for path in POSTS
    if path.startswith("/v1/") and (short := path.removeprefix("/v1")) not in POSTS
}
"""Paths as clients ask for them whose base URL has no `/v1`."""
_LM_STUDIO = {f"/api/v0/{name}": f"/v1/{name}" for name in ("chat/completions", "completions", "embeddings")}
"""LM Studio's own paths for OpenAI's forms."""
ASKS = {
    "/tokenize": Ask(fields.check_tokenize, translate.tokenize),
    "/detokenize": Ask(fields.check_detokenize, translate.detokenize),
    "/apply-template": Ask(fields.check_template, translate.apply_template),
}


def _document(looked: Looked) -> dict[str, Any]:
    """Describe the endpoint for programs."""
    models = [target.name for target in looked.targets]
    return openapi.document({**POSTS, **ASKS}, GETS, _GET_PREFIXES, POSTED_GETS, models)


GETS: dict[str, Look] = {
    "/openapi.json": _document,
    "/": listed.health,
    "/health": listed.health,
    "/v1/health": listed.health,
    "/v1/models": listed.models,
    "/models": listed.models,
    "/props": listed.props,
    "/api/v0/models": listed.lm_studio_models,
    "/api/v1/models": listed.lm_studio_models_v1,
    "/api/version": listed.ollama_version,
    "/api/tags": listed.ollama_tags,
    "/api/ps": listed.ollama_running,
}
POSTED_GETS: dict[str, Look] = {
    "/api/show": listed.ollama_show,
}
"""Questions that only look, and are posted all the same."""
HEALTH = {path for path, look in GETS.items() if look is listed.health}
_GET_PREFIXES: dict[str, Look] = {
    listed.MODEL_PREFIX: listed.one_model,
    listed.LM_STUDIO_PREFIX: listed.lm_studio_model,
}


CLOSED = {
    "/api/pull": _ELSEWHERE,
    "/api/push": _ELSEWHERE,
    "/api/create": _ELSEWHERE,
    "/api/copy": _ELSEWHERE,
    "/api/delete": _ELSEWHERE,
    "/v1/audio/transcriptions": _NO_ENGINE,
    "/v1/audio/translations": _NO_ENGINE,
    "/v1/audio/speech": _NO_ENGINE,
    "/v1/images/generations": _NO_ENGINE,
    "/v1/images/edits": _NO_ENGINE,
    "/v1/moderations": _NO_ENGINE,
    "/slots": _OF_ENGINE,
    "/lora-adapters": _OF_ENGINE,
    "/tools": _OF_ENGINE,
    "/cors-proxy": _OF_ENGINE,
}
"""Paths that clients know from elsewhere, each with the reason why it is closed here."""
_KEPT = "/v1/responses/"
"""Below it OpenAI has the answers that were kept."""
METRICS = "/metrics"
OLLAMA_LOADS = frozenset({"/api/chat", "/api/generate"})
"""Paths at which a request without a text has a model loaded or ended."""
LOAD, UNLOAD = "/api/v1/models/load", "/api/v1/models/unload"
_OF_ADMINS = frozenset({METRICS, LOAD, UNLOAD})
"""Paths that tell of everybody's requests, or decide what is there for them."""


def as_meant(path: str) -> str:
    """Return the path that a client means whose base URL lacks `/v1`, has what it adds, or ends in `/`."""
    while "//" in path:
        path = path.replace("//", "/")
    if path.startswith("/v1/v1/"):
        path = path.removeprefix("/v1")
    return SHORT.get(path) or _LM_STUDIO.get(path, path)


def permission(path: str) -> Permission:
    """Return what a key has to permit for a path."""
    return Permission.ADMIN if path in _OF_ADMINS else Permission.INFER


def post(method: str, path: str) -> Post | Ask | None:
    """Return the route of POST at a path; raises EndpointError 405 for another method there."""
    found = POSTS.get(path) or ASKS.get(path)
    if found is not None:
        need(method, path, "POST")
    return found


def get(method: str, path: str) -> Look:
    """Return the route that looks at a path; raises EndpointError 404 where there is none, and 405."""
    if path in POSTED_GETS:
        need(method, path, "POST")
        return POSTED_GETS[path]
    found = GETS.get(path) or next(
        (look for start, look in _GET_PREFIXES.items() if path.startswith(start) and path != start), None
    )
    if path in CLOSED:
        raise faults.EndpointError(
            501, "not_supported", f"This endpoint has no {path}. {CLOSED[path]}", Reason.UNSUPPORTED
        )
    if path.startswith(_KEPT):
        raise faults.EndpointError(
            404,
            "not_found",
            "This endpoint keeps no answers, so there is none to be read, deleted or cancelled by its id. A "
            "request that is at work is ended by closing its connection, or with: sndr requests cancel ID",
            Reason.NOT_FOUND,
        )
    if found is None:
        raise _not_found(path)
    need(method, path, "GET", "HEAD")
    return found


def need(method: str, path: str, *allowed: str) -> None:
    """Refuse another method than those of a path; raises EndpointError 405."""
    if method not in allowed:
        raise faults.EndpointError(
            405,
            "method_not_allowed",
            f"{path} takes {allowed[0]}, not {method}.",
            headers=(("allow", ", ".join(allowed)),),
        )


def _not_found(path: str) -> faults.EndpointError:
    known = (*POSTS, *ASKS, *GETS, *POSTED_GETS, METRICS, LOAD, UNLOAD)
    meant = next((route for route in known if path.rstrip("/").endswith(route.removeprefix("/v1"))), None)
    if meant is not None:
        hint = f" Did you mean {meant}? The base URL of this endpoint ends in /v1."
    else:
        hint = f" It answers {', '.join(sorted(known))}."
    return faults.EndpointError(
        404, "unknown_route", f"This endpoint has no {path[:200]}.{hint}", Reason.NOT_FOUND
    )
