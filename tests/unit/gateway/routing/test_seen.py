"""The last answer and failure of a provider: as requests met them, and never before one did."""

import json
from typing import Any

import pytest

from engine_host.gateway.routing.seen import Seen
from engine_host.protocol.endpoint.routes import Provider, RouteTargets
from tests.unit.gateway.asking import CHAT, ask

HELLO = {"model": "out", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 5}
GONE = "unix:/nowhere/at/all.sock"


def after(world: Any, *, url: str = "", script: Any = None, **more: Any) -> tuple[Seen, Any]:
    """Ask a route to a FAKE provider once; return what was seen of it."""
    found: list[Any] = []

    def prepare(served: Any) -> None:
        provider = Provider(url=url or f"unix:{served.engine.socket}", model="large", context=4096)
        served.routes.put("out", RouteTargets(provider=provider, allow_remote=True))
        served.running = []
        if script is not None:
            served.engine.script = script
        assert served.gateway.providers.of(provider).works is None
        found.append((served, provider))

    ask(world, "POST", CHAT, prepare, json=HELLO | more)
    served, provider = found[0]
    return served.gateway.providers.of(provider), served


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer(world: Any, stream: bool) -> None:
    seen, served = after(world, stream=stream)
    assert (seen.works, seen.failed_at) == (True, None)
    assert served.routes_changed == 1


def test_no_connection(world: Any) -> None:
    seen, served = after(world, url=GONE)
    assert (seen.works, seen.answered_at) == (False, None)
    assert "no connection" in seen.failure
    assert served.routes_changed == 1


@pytest.mark.parametrize(("status", "works"), [(500, False), (401, False), (404, False), (400, None)])
def test_a_refusal(world: Any, scripts: Any, status: int, works: bool | None) -> None:
    told = json.dumps({"error": {"message": "\x1b[31mno\n" + "x" * 5000}}).encode()
    seen, _ = after(world, script=scripts.answers(status, told))
    assert seen.works is works
    assert len(seen.failure) < 400
    assert "\n" not in seen.failure
