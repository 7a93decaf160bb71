"""Requests with a marked word in every place that a client can write to, and who wrote it down."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

CHAT = "/v1/chat/completions"
COMPLETION = "/v1/completions"
WORD = "Zyzzyvaquokka"


@dataclass(frozen=True)
class Secret:
    """One request; `body` is JSON, or the bytes as they are sent."""

    name: str
    path: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


def secrets(word: str, model: str) -> list[Secret]:
    """Requests that hold `word`, each in another place; some are right, most are refused somewhere."""
    found = [_chat(name, model, body) for name, body in _chat_places(word)]
    found += [
        Secret(f"completion {name}", COMPLETION, _json(model=model, max_tokens=4, **body))
        for name, body in _completion_places(word)
    ]
    found += [Secret(name, path, body, headers) for name, path, body, headers in _raw_places(word, model)]
    return found


def _chat(name: str, model: str, body: dict[str, Any]) -> Secret:
    whole = {"model": model, "max_tokens": 4, "messages": [{"role": "user", "content": "Hello"}], **body}
    return Secret(name, CHAT, json.dumps(whole).encode())


def _said(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"messages": list(messages)}


def _schema(schema: Any) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}


def _tool(**function: Any) -> dict[str, Any]:
    whole = {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}, **function}
    return {"tools": [{"type": "function", "function": whole}], "tool_choice": "required"}


def _chat_places(word: str) -> Iterator[tuple[str, dict[str, Any]]]:
    user = {"role": "user", "content": word}
    yield "prompt", _said(user)
    yield "prompt of many lines", _said({"role": "user", "content": f"one\n{word}\n\n  {word} 4\n"})
    yield "long prompt", _said({"role": "user", "content": f"{word} " * 20_000})
    yield "system", _said({"role": "system", "content": word}, {"role": "user", "content": "x"})
    yield "role", _said({"role": word, "content": "x"})
    yield "name of a speaker", _said({"role": "user", "content": "x", "name": word})
    yield "content of a wrong type", _said({"role": "user", "content": {word: word}})
    yield "part of an unknown type", _said({"role": "user", "content": [{"type": word, "text": word}]})
    yield "messages of a wrong type", {"messages": word}
    yield "message of a wrong type", {"messages": [word]}
    yield "answer to go on with", _said(user, {"role": "assistant", "content": word})
    yield (
        "reasoning to go on with",
        _said(user, {"role": "assistant", "reasoning_content": word, "content": word}),
    )
    for kind, address in (
        ("data", f"data:image/png;base64,{word}"),
        ("file", f"file:///tmp/{word}.png"),
        ("web", f"http://127.0.0.1:9/{word}.png"),
        ("odd", f"{word}://x"),
    ):
        part = {"type": "image_url", "image_url": {"url": address}}
        yield f"image by {kind}", _said({"role": "user", "content": [part]})
    sound = {"type": "input_audio", "input_audio": {"data": word, "format": word}}
    yield "sound", _said({"role": "user", "content": [sound]})
    yield "tool's name", _tool(name=word)
    yield "tool's name with odd letters", _tool(name=f'{word}"\n{word}')
    yield "tool's description", _tool(description=word)
    yield "tool's parameter", _tool(parameters={"type": "object", "properties": {word: {"type": "string"}}})
    yield (
        "tool's parameter of an unknown type",
        _tool(parameters={"type": "object", "properties": {"a": {"type": word}}, "required": [word]}),
    )
    yield "tool's parameters of a wrong type", _tool(parameters=word)
    yield "tool's reference", _tool(parameters={"$ref": f"#/{word}"})
    yield "tool of an unknown type", {"tools": [{"type": word, word: word}]}
    yield "tool without a function", {"tools": [{"type": "function", word: word}]}
    yield "tools of a wrong type", {"tools": word}
    yield "tool choice", {**_tool(), "tool_choice": {"type": "function", "function": {"name": word}}}
    yield "tool choice of a wrong kind", {**_tool(), "tool_choice": word}
    call = {"id": word, "type": "function", "function": {"name": word, "arguments": word}}
    yield (
        "call of a tool and its result",
        _said(
            user,
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": word, "content": word},
        ),
    )
    yield "call of a wrong type", _said(user, {"role": "assistant", "tool_calls": word})
    yield "grammar", {"grammar": f'root ::= "{word}"'}
    yield "refused grammar", {"grammar": f"root ::= {word} (\n{word} ::= [a-z\n# {word}\nx{word}"}
    yield "grammar with an unknown rule", {"grammar": f"root ::= {word}"}
    yield "grammar without a root", {"grammar": f'{word} ::= "a"'}
    yield "grammar of a wrong type", {"grammar": {word: word}}
    yield "grammar with escapes", {"grammar": f'root ::= "\\q{word}" \x1b[31m{word}'}
    yield (
        "lazy grammar",
        {
            "grammar": f'root ::= "{word}"',
            "grammar_lazy": True,
            "grammar_triggers": [{"type": 1, "value": word}],
        },
    )
    yield "schema", {"json_schema": {"type": "object", "properties": {word: {"type": "string"}}}}
    yield "schema of a wrong type", {"json_schema": word}
    yield "schema with an unknown type", _schema({"type": word})
    yield "schema with a reference", _schema({"$ref": f"#/definitions/{word}"})
    yield "schema with a remote reference", _schema({"$ref": f"https://127.0.0.1:9/{word}.json"})
    yield "schema with a pattern", _schema({"type": "string", "pattern": f"^({word}[$"})
    yield "schema with values", _schema({"enum": [word, {word: word}]})
    yield "schema with a constant", _schema({"const": word})
    yield "schema without sense", _schema({"type": "object", "properties": word, "required": word})
    yield "schema with a format", _schema({"type": "string", "format": word})
    named = {"name": word, "schema": {}}
    yield "schema's name", {"response_format": {"type": "json_schema", "json_schema": named}}
    yield "format of an answer", {"response_format": {"type": word}}
    yield "structured outputs", {"structured_outputs": {"regex": f"({word}["}}
    yield "structured outputs of choices", {"structured_outputs": {"choice": [word]}}
    yield "structured outputs by a grammar", {"structured_outputs": {"grammar": f"root ::= {word} ("}}
    yield "structured outputs of no kind", {"structured_outputs": {word: word}}
    yield "guided by a pattern", {"guided_regex": f"({word}["}
    yield "template", {"chat_template": "{{ raise_exception('" + word + "') }}"}
    yield "refused template", {"chat_template": "{% for " + word + " %}"}
    yield "template's values", {"chat_template_kwargs": {word: word, "enable_thinking": word}}
    yield "template's values of a wrong type", {"chat_template_kwargs": word}
    yield "stop", {"stop": [word]}
    yield "stop of a wrong type", {"stop": {word: word}}
    yield "logit bias", {"logit_bias": {word: 1}}
    yield "logit bias of a wrong type", {"logit_bias": [[word, word]]}
    yield "forbidden words", {"bad_words": [word]}
    yield "sequence breakers", {"dry_multiplier": 1, "dry_sequence_breakers": [word]}
    yield "sequence breakers of a wrong type", {"dry_sequence_breakers": word}
    yield "samplers", {"samplers": [word]}
    yield "samplers of a wrong type", {"samplers": {word: word}}
    for number in [
        "temperature",
        "max_tokens",
        "n",
        "seed",
        "top_p",
        "logprobs",
        "stream",
        "id_slot",
        "lora",
    ]:
        yield f"{number} of a wrong type", {number: word}
    yield "an unknown key", {word: word}
    yield "user", {"user": word, "safety_identifier": word, "prompt_cache_key": word}
    yield "metadata", {"metadata": {word: word}}
    yield "reasoning", {"reasoning_format": word, "reasoning_effort": word, "reasoning": {"effort": word}}
    yield "stream options", {"stream": True, "stream_options": {word: word, "include_usage": word}}
    yield "stream of an answer", {"stream": True, **_said(user)}
    yield "model", {"model": word}
    yield "model of a wrong type", {"model": [word]}
    yield "prediction", {"prediction": {"type": "content", "content": word}}
    yield "service", {"service_tier": word, "modalities": [word]}


def _completion_places(word: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "prompt", {"prompt": word}
    yield "prompts", {"prompt": [word, word]}
    yield "prompt of a wrong type", {"prompt": {word: word}}
    yield "prompt of numbers and words", {"prompt": [1, word, {"x": word}]}
    yield "suffix", {"prompt": word, "suffix": word}
    yield "echo", {"prompt": word, "echo": True, "logprobs": 2}
    yield "refused grammar", {"prompt": "x", "grammar": f"root ::= {word} ("}
    yield "schema", {"prompt": "x", "json_schema": {"$ref": f"#/{word}"}}
    yield "image", {"prompt": {"prompt_string": word, "multimodal_data": [word]}}
    yield "embeddings as a prompt", {"prompt_embeds": word}


def _raw_places(word: str, model: str) -> Iterator[tuple[str, str, bytes, tuple[tuple[str, str], ...]]]:
    said = [{"role": "user", "content": word}]
    asked = _json(model=model, messages=said, max_tokens=2)
    yield "no JSON", CHAT, f"{{{word}".encode(), ()
    yield "JSON cut off", CHAT, asked[:-9], ()
    yield "no UTF-8", CHAT, asked.replace(word.encode(), word.encode() + b"\xff\xfe"), ()
    yield "JSON of another shape", CHAT, json.dumps([word]).encode(), ()
    yield "JSON nested deeply", CHAT, b'{"a":' * 200 + json.dumps(word).encode() + b"}" * 200, ()
    yield "address", f"/v1/{word}", asked, ()
    yield "query of the address", f"{CHAT}?{word}={word}", asked, ()
    yield "header", CHAT, asked, (("x-secret", word), ("user-agent", word), ("x-conversation-id", word))
    yield "request id", CHAT, asked, (("x-request-id", word),)
    yield "content type", CHAT, asked, (("content-type", f"multipart/form-data; boundary={word}"),)
    for route, unfit in (("embeddings", {word: word}), ("responses", [{word: word}])):
        yield route, f"/v1/{route}", _json(model=model, input=word, max_output_tokens=2), ()
        yield f"{route} of a wrong type", f"/v1/{route}", _json(model=model, input=unfit), ()
    yield "responses' tool", "/v1/responses", _json(model=model, input=word, tools=[{"type": word}]), ()
    yield "messages", "/v1/messages", _json(model=model, messages=said, max_tokens=2, system=word), ()
    part = {"type": word, "text": word, "source": {"type": word, "url": word}}
    for name, wrong in (("type", {word: word}), ("part", {"role": "user", "content": [part]})):
        yield f"messages' {name}", "/v1/messages", _json(model=model, messages=[wrong], max_tokens=2), ()
    yield "counting", "/v1/messages/count_tokens", _json(model=model, messages=said), ()


def _json(**body: Any) -> bytes:
    return json.dumps(body).encode()


def ask_everything(port: int, model: str) -> dict[str, int]:
    """Send every request to an endpoint; return the status of each answer by the request's name."""
    said: dict[str, int] = {}
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
        for secret in secrets(WORD, model):
            headers = {"content-type": "application/json", **dict(secret.headers)}
            said[secret.name] = client.post(secret.path, content=secret.body, headers=headers).status_code
    return said


def found_below(word: str, *folders: Path) -> list[str]:
    """The files below these folders that hold the word in any case, each with the text around it.

    A name of a file that holds it is told too.
    """
    sought = word.lower().encode()
    found = []
    for folder in folders:
        for path, inner, names in os.walk(folder):
            found += [f"{path}/{name}: its name" for name in (*inner, *names) if word.lower() in name.lower()]
            for file in (Path(path) / name for name in names):
                if not file.is_file():
                    continue
                content = file.read_bytes()
                place = content.lower().find(sought)
                if place >= 0:
                    found.append(f"{file}: {content[max(0, place - 160) : place + 60]!r}")
    return found
