"""Ollama's routes that ask an engine: each becomes a request of OpenAI's form, and its answer Ollama's."""

import json
from dataclasses import replace
from typing import Any

from engine_host.gateway.call import Call
from engine_host.gateway.ollama import request
from engine_host.gateway.ollama.embedded import OllamaVectors
from engine_host.gateway.ollama.lines import OllamaLines, loaded
from engine_host.gateway.routes import calls
from engine_host.gateway.routes.rows import Asked

_CHAT, _COMPLETION, _EMBEDDINGS = "/v1/chat/completions", "/v1/completions", "/v1/embeddings"


def chat(asked: Asked) -> Call:
    """Ask for a chat; raises EndpointError."""
    if request.is_load(asked.body):
        return _loaded(asked, is_chat=True)
    lines = OllamaLines(asked.target.name, is_chat=True)
    return calls.chat(_as(asked, _CHAT, request.chat(asked.body, asked.target)), lines)


def generate(asked: Asked) -> Call:
    """Ask for a text: of a prompt in the template, of a raw one, or for a gap; raises EndpointError."""
    body, target = asked.body, asked.target
    if request.is_load(body):
        return _loaded(asked, is_chat=False)
    lines = OllamaLines(target.name, is_chat=False)
    if body.get("raw") or body.get("suffix"):
        call = calls.completion(_as(asked, _COMPLETION, request.completion(body, target)))
        return calls.translated(call, lines)
    return calls.chat(_as(asked, _CHAT, request.chat_of_prompt(body, target)), lines)


def embed(asked: Asked) -> Call:
    """Ask for vectors; raises EndpointError."""
    call = calls.embeddings(_as(asked, _EMBEDDINGS, request.embeddings(asked.body, asked.target)))
    return calls.translated(call, OllamaVectors(asked.target.name, single=asked.path == "/api/embeddings"))


def _as(asked: Asked, path: str, body: dict[str, Any]) -> Asked:
    return replace(asked, path=path, body=body, raw=json.dumps(body, ensure_ascii=False).encode())


def _loaded(asked: Asked, *, is_chat: bool) -> Call:
    unload = asked.body.get("keep_alive") in (0, "0", "0s")
    ready = loaded(asked.target.name, is_chat=is_chat, unload=unload)
    return Call("", b"", stream=False, ready=ready)
