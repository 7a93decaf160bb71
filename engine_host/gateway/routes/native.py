"""`/completion` and `/infill`: passed on to llama.cpp as they are, and translated for vLLM."""

import json
from dataclasses import replace

from engine_host.gateway.call import Call
from engine_host.gateway.llamacpp import request
from engine_host.gateway.llamacpp.answer import NativeCompletion
from engine_host.gateway.routes import calls
from engine_host.gateway.routes.rows import Asked

_COMPLETION = "/v1/completions"


def completion(asked: Asked) -> Call:
    """Ask for a completion in llama.cpp's form; raises EndpointError."""
    if asked.target.native_infill:
        calls.check_writes(asked)
        return calls.counting(Call("/completion", asked.raw, asked.stream), asked.body, asked.target)
    body = request.completion(asked.body, asked.target.engine_name)
    inner = replace(asked, path=_COMPLETION, body=body, raw=json.dumps(body).encode())
    return calls.translated(calls.completion(inner), NativeCompletion(asked.target.name))


def infill(asked: Asked) -> Call:
    """Ask for the middle of a text in llama.cpp's form; raises EndpointError."""
    calls.check_writes(asked)
    calls.check_fills(asked.target)
    if asked.target.native_infill:
        return calls.counting(Call("/infill", asked.raw, asked.stream), asked.body, asked.target)
    body = request.gap(asked.body, asked.target.engine_name)
    inner = replace(asked, path=_COMPLETION, body=body, raw=json.dumps(body).encode())
    return calls.translated(calls.completion(inner), NativeCompletion(asked.target.name))
