"""The command in a refusal starts the model in the place of the engine, whatever that is called."""

import json
from typing import Any

import pytest

from engine_host.gateway.directory import Target
from engine_host.gateway.error_answers import EndpointError
from engine_host.gateway.routes import calls
from engine_host.gateway.routes.rows import Asked


def refused(path: str, call: Any, **target: Any) -> str:
    """Return the words of a refusal by an engine called `my coder` with the model `qwen`."""
    engine = Target("e", "my coder", 1, 4096, 0.0, socket="/s", stands_for=("preset", "qwen"), **target)
    body = {"model": "my coder", "input": "x", "messages": []}
    with pytest.raises(EndpointError) as raised:
        call(Asked(path, json.dumps(body).encode(), body, engine, "req_1"))
    return raised.value.message


@pytest.mark.parametrize(
    ("path", "call", "target", "more"),
    [
        ("/v1/embeddings", calls.embeddings, {}, " --set embeddings=true"),
        ("/v1/rerank", calls.rerank, {}, " --set reranking=true"),
        ("/v1/chat/completions", calls.chat, {"embeddings": True}, ""),
    ],
)
def test_the_model_is_named_by_its_id(path: str, call: Any, target: dict[str, Any], more: str) -> None:
    command = f"sndr run qwen --name 'my coder'{more} --instead-of 'my coder'"
    assert refused(path, call, **target).endswith(command)


def test_an_engine_called_as_its_model_needs_no_name() -> None:
    engine = Target("e", "qwen", 1, 4096, 0.0, socket="/s", stands_for=("qwen",))
    with pytest.raises(EndpointError) as raised:
        calls.rerank(Asked("/v1/rerank", b"{}", {}, engine, "req_1"))
    assert raised.value.message.endswith("sndr run qwen --set reranking=true --instead-of qwen")
