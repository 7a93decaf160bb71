"""The JSON schemas of requests, one for each check: what a client may send, for /openapi.json."""

from collections.abc import Callable, Mapping
from typing import Any

from engine_host.gateway import reranking
from engine_host.gateway.llamacpp import request as of_llamacpp
from engine_host.gateway.ollama import fields as of_ollama
from engine_host.gateway.openai import bodies
from engine_host.gateway.openai.bounds import BOUNDS
from engine_host.gateway.tokens import fields

Schema = Mapping[str, Any]
_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", dict: "object", list: "array"}
_TEXT, _TEXTS = {"type": "string"}, {"type": ["string", "array"], "items": {}}
_MODEL = {"model": {"type": ["string", "null"], "description": "the only one that runs where none is named"}}
_MESSAGES = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "properties": {"role": _TEXT, "content": {}},
        "required": ["role"],
    },
}


def _kinds(table: Mapping[str, tuple[type, ...]]) -> dict[str, Any]:
    """Return the schemas of fields that may be left out or null."""
    found = {}
    for name, kinds in table.items():
        names = dict.fromkeys("number" if float in kinds and kind is int else _NAMES[kind] for kind in kinds)
        bound = BOUNDS.get(name)
        found[name] = {"type": [*names, "null"], **(bound.schema if bound is not None else {})}
    return found


def _object(own: Schema, required: tuple[str, ...] = (), shared: Schema | None = None) -> Schema:
    properties = {**(shared or {}), **_MODEL, **own}
    return {"type": "object", "properties": properties, "required": list(required)}


def _one_of(schema: Schema, *names: str) -> Schema:
    """Return the schema of objects that have one of these fields."""
    return {**schema, "anyOf": [{"required": [name]} for name in names]}


_OPENAI = _kinds({name: kinds for name, (kinds, _) in bodies.TYPES.items()})
_OLLAMA = {**_kinds(of_ollama.KINDS), "stream": {"type": ["boolean", "null"]}}
_LLAMACPP = {
    **{name: {"type": ["number", "null"]} for name in of_llamacpp.NUMBERS},
    **{name: {"type": ["integer", "null"]} for name in of_llamacpp.WHOLE},
    "stream": {"type": ["boolean", "null"]},
}
_LENGTH = {"max_tokens": {"type": "integer", "minimum": 1}}
_DOCUMENTS = {"type": "array", "minItems": 1, "items": _TEXT}

REQUESTS: Mapping[Callable[[dict[str, Any]], None], Schema] = {
    bodies.check_chat: _object({"messages": _MESSAGES}, ("messages",), _OPENAI),
    bodies.check_message: _object({"messages": _MESSAGES, **_LENGTH}, ("messages", "max_tokens"), _OPENAI),
    bodies.check_completion: _object(
        # None at all where only the prompt is scored (`echo`).
        {"prompt": _TEXTS, "max_tokens": {"type": ["integer", "null"], "minimum": 0}},
        ("prompt",),
        _OPENAI,
    ),
    bodies.check_responses: _object({"input": _TEXTS}, ("input",), _OPENAI),
    bodies.check_embeddings: _object({"input": _TEXTS}, ("input",)),
    reranking.check: _object(
        {"query": _TEXT, "documents": _DOCUMENTS, "top_n": {"type": ["integer", "null"], "minimum": 1}},
        ("query", "documents"),
    ),
    of_llamacpp.check_completion: _object({"prompt": _TEXTS}, ("prompt",), _LLAMACPP),
    of_llamacpp.check_infill: _object(
        {"input_prefix": _TEXT, "input_suffix": _TEXT, "prompt": _TEXT},
        ("input_prefix", "input_suffix"),
        _LLAMACPP,
    ),
    of_ollama.check_chat: _object({"messages": {**_MESSAGES, "minItems": 0}}, (), _OLLAMA),
    of_ollama.check_generate: _object({"prompt": _TEXT}, (), _OLLAMA),
    of_ollama.check_embed: _one_of(
        _object({"input": {**_TEXTS, "items": _TEXT}, "prompt": _TEXT}, (), _OLLAMA), "input", "prompt"
    ),
    fields.check_tokenize: _one_of(
        _object({"content": _TEXT, "prompt": _TEXT, "messages": _MESSAGES}), "content", "prompt", "messages"
    ),
    fields.check_detokenize: _object(
        {"tokens": {"type": "array", "items": {"type": "integer", "minimum": 0}}}, ("tokens",)
    ),
    fields.check_template: _object({"messages": _MESSAGES}, ("messages",)),
}
"""By the function that refuses what is none of them; fields that are not named go to the engine."""


def named_in(schema: Schema, model: Schema) -> Schema:
    """Return a request's schema in which the model is one of these."""
    optional = {**model, "enum": [*model["enum"], *([] if "model" in schema["required"] else [None])]}
    return {**schema, "properties": {**schema["properties"], "model": optional}}


NAMED: Schema = {"type": "object", "properties": {"model": _TEXT}, "required": ["model"]}
"""A question about one model."""
