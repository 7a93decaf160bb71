"""An engine under another id: it is asked by its own name, and every form of its answer has the other."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from engine_host.protocol.endpoint.routes import RouteTargets
from tests.unit.gateway.asking import CHAT, ask, code_of

HELLO = {"model": "coder", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 5}


def alias(seen: list[Any] | None = None, **facts: Any) -> Callable[[Any], None]:
    """Lead the id `coder` to the FAKE engine `m`."""

    def prepare(served: Any) -> None:
        served.routes.put("coder", RouteTargets(engines=("m",)))
        served.running = [replace(target, **facts) for target in served.running]
        if seen is not None:
            seen.append(served)

    return prepare


@pytest.mark.parametrize("of_vllm", [False, True])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", [CHAT, "/v1/completions", "/api/chat"])
def test_each_form(world: Any, path: str, stream: bool, of_vllm: bool) -> None:
    seen: list[Any] = []
    body = {**HELLO, "prompt": "hi", "stream": stream}
    facts = {"native_infill": not of_vllm, "usage_on_request": of_vllm}
    answer = ask(world, "POST", path, alias(seen, **facts), json=body)
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-sndr-engine"] == "m"
    assert '"coder"' in answer.text
    assert '"m"' not in answer.text
    assert seen[0].engine.received[0][1]["model"] == "m"
    assert {event.request.model for event in seen[0].events} == {"coder"}
    assert {event.request.engine for event in seen[0].events} == {"e1"}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", [CHAT, "/api/v0/chat/completions", "/v1/messages", "/api/chat"])
def test_a_replica_that_takes_no_connection_gives_way(world: Any, path: str, stream: bool) -> None:
    def prepare(served: Any) -> None:
        (target,) = served.running
        dead = replace(target, engine="e0", name="dead", socket="/nowhere/at/all.sock")
        served.running = [dead, target]
        served.routes.put("coder", RouteTargets(engines=("dead", "m")))

    answer = ask(world, "POST", path, prepare, json={**HELLO, "stream": stream})
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-sndr-engine"] == "m"


def test_the_engines_own_name_is_passed_on_byte_for_byte(world: Any) -> None:
    answer = ask(world, "POST", CHAT, alias(), json={**HELLO, "model": "m", "stream": True})
    assert '"model": "m"' in answer.text, "as the engine wrote it, spaces and all"


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models?client_version=1", "/v1/models?limit=5",
                                  "/api/tags", "/api/v0/models", "/api/v1/models"])  # fmt: skip
def test_every_list_has_both(world: Any, path: str) -> None:
    answer = ask(world, "GET", path, alias())
    assert '"coder"' in answer.text
    assert '"m"' in answer.text


def test_one_model_and_what_it_stands_for(world: Any) -> None:
    entry = ask(world, "GET", "/v1/models/coder", alias()).json()
    assert (entry["id"], entry["stands_for"], entry["context_length"]) == ("coder", ["m"], 4096)
    assert ask(world, "POST", "/api/show", alias(), json={"model": "coder:latest"}).status_code == 200


def test_a_command_names_the_engine(world: Any) -> None:
    answer = ask(world, "POST", "/v1/embeddings", alias(), json={"model": "coder", "input": "a"})
    assert code_of(answer) == (400, "embeddings_off")
    assert "sndr run m --set embeddings=true" in answer.json()["error"]["message"]


def test_an_odd_id_is_only_an_unknown_model(world: Any) -> None:
    for name in ("\x1b[31m", "../../etc", "coder/../m", "x" * 100_000, "coder\n"):
        answer = ask(world, "POST", CHAT, alias(), json={**HELLO, "model": name})
        assert code_of(answer) == (404, "model_not_found")
        assert len(answer.text) < 2000
