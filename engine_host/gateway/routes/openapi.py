"""The endpoint described for programs: OpenAPI 3.1, made from the table of routes."""

from collections.abc import Iterable, Mapping
from typing import Any

from engine_host import __version__
from engine_host.gateway.routes.rows import Ask, Post
from engine_host.gateway.routes.schemas import NAMED, REQUESTS, Schema, named_in

_ANY = {"application/json": {"schema": {"type": "object"}}}
_STREAMED = {**_ANY, "text/event-stream": {"schema": {"type": "string"}}}
_LINES = {**_ANY, "application/x-ndjson": {"schema": {"type": "string"}}}
_ERRORS = {
    status: {"description": f"{why}: an error object with a message and a code", "content": _ANY}
    for status, why in (("4XX", "the request is at fault"), ("503", "no engine can answer now"))
}


def document(
    posts: Mapping[str, Post | Ask],
    gets: Iterable[str],
    named: Iterable[str],
    posted: Iterable[str],
    models: Iterable[str],
) -> dict[str, Any]:
    """Return the document of these paths, and of the models that run; `named` begin one that ends in an id.

    Source: spec.openapis.org/oas/v3.1.0.
    """
    model = {"enum": [*models]}
    paths: dict[str, Any] = {}
    for path, row in posts.items():
        streamed = _LINES if path.startswith("/api/") else _STREAMED
        answer = streamed if isinstance(row, Post) else _ANY
        paths[path] = {"post": _operation("post", path, answer, named_in(REQUESTS[row.check], model))}
    for path in posted:
        paths[path] = {"post": _operation("post", path, _ANY, named_in(NAMED, model))}
    for path in gets:
        paths[path] = {"get": _operation("get", path, _ANY)}
    for start in named:
        path = f"{start}{{model}}"
        one = {"name": "model", "in": "path", "required": True, "schema": model}
        paths[path] = {"get": {**_operation("get", path, _ANY), "parameters": [one]}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "SNDR Control Center", "version": __version__},
        "paths": paths,
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"key": []}],
    }


def _operation(method: str, path: str, answer: Schema, request: Schema | None = None) -> dict[str, Any]:
    name = "".join(part if part.isalnum() else "_" for part in path).strip("_")
    made: dict[str, Any] = {
        "operationId": f"{method}_{name}",
        "responses": {"200": {"description": "the answer", "content": answer}, **_ERRORS},
    }
    if request is not None:
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": request}}}
    return made
