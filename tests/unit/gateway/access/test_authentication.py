"""Access to the endpoint: names of the host, pages of browsers, and keys."""

import asyncio
import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from engine_host.core.addresses import own_names
from tests.unit.gateway.asking import CHAT, HELLO, ask, code_of, preflight


def test_host_names(world: Any) -> None:
    for name in ("localhost", "127.0.0.1:8020", "[::1]:8020", "LOCALHOST:1"):
        assert ask(world, "GET", "/v1/models", headers={"host": name}).status_code == 200
    for name in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", ""):
        assert code_of(ask(world, "GET", "/v1/models", headers={"host": name})) == (403, "host_not_allowed")

    def allow(served: Any) -> None:
        served.hosts = frozenset({"workstation.lan"})

    assert ask(world, "GET", "/health", allow, headers={"host": "Workstation.lan:8020"}).status_code == 200


@pytest.mark.parametrize(("version", "status"), [(b"1.0", b"200"), (b"1.1", b"403")])
def test_a_proxys_question_of_http_1_0_names_no_host(world: Any, version: bytes, status: bytes) -> None:
    async def go() -> bytes:
        async with world() as served:
            at = urlsplit(served.url)
            reader, writer = await asyncio.open_connection(at.hostname, at.port)
            writer.write(b"GET /health HTTP/%b\r\nConnection: close\r\n\r\n" % version)
            try:
                return await reader.read()
            finally:
                writer.close()

    assert asyncio.run(go()).split(b" ")[1] == status


def test_where_a_key_is_asked_for_the_machines_own_names_and_numbers_pass(world: Any) -> None:
    def lock(served: Any) -> None:
        served.keys = frozenset({"key-a"})

    own = [next(iter(own_names())).upper(), "192.168.7.4:8020", "[fd00::7]:8020", "0.0.0.0:8020"]
    for name in own:
        headers = {"host": name, "x-api-key": "key-a"}
        assert ask(world, "GET", "/v1/models", lock, headers=headers).status_code == 200
        assert ask(world, "GET", "/v1/models", lock, headers={"host": name}).status_code == 401
        answer = ask(world, "GET", "/v1/models", headers={"host": name})
        assert code_of(answer) == (403, "host_not_allowed"), "without a key, nobody but this machine"
    for name in ("evil.example", "192.168.7.4.evil.example:8020", "192.168.7.4.", "", "0xc0a80704"):
        answer = ask(world, "GET", "/v1/models", lock, headers={"host": name, "x-api-key": "key-a"})
        assert code_of(answer) == (403, "host_not_allowed"), "a name may be pointed here by anybody"


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "https://evil.example:8020", "null", "http://localhost.evil.example", "", "x"],
)
def test_a_foreign_web_page_is_refused_before_any_work(world: Any, origin: str) -> None:
    # A browser sends this body without asking first, so refusing the preflight alone would not do.
    received: list[Any] = []

    def watch(served: Any) -> None:
        received.append(served.engine.received)

    headers = {"origin": origin, "content-type": "text/plain"}
    answer = ask(world, "POST", CHAT, watch, content=json.dumps(HELLO), headers=headers)
    assert code_of(answer) == (403, "origin_not_allowed")
    assert answer.json()["error"]["src"] == "sndr"
    assert received == [[]]


@pytest.mark.parametrize("origin", ["http://evil.example", "http://localhost:3000", "null"])
def test_a_preflight_of_a_page_that_nobody_named_is_refused_and_grants_nothing(
    world: Any, origin: str
) -> None:
    headers = {"origin": origin, "access-control-request-method": "POST"}
    answer = ask(world, "OPTIONS", CHAT, headers=headers)
    assert code_of(answer) == (403, "origin_not_allowed")
    assert "endpoint.allowed_hosts" in answer.json()["error"]["message"]
    assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize("origin", ["https://app.example", "http://localhost:3000"])
def test_a_page_that_was_named_may_ask_and_read_answers(world: Any, origin: str) -> None:
    def name(served: Any) -> None:
        served.hosts = frozenset({"https://app.example/", "http://localhost:3000"})
        served.keys = frozenset({"key-a"})

    asking = {
        "origin": origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type,x-stainless-os",
        "access-control-request-private-network": "true",
    }
    answer = preflight(world, name, asking)
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == origin
    assert "POST" in answer.headers["access-control-allow-methods"]
    assert answer.headers["access-control-allow-headers"] == asking["access-control-request-headers"]
    assert answer.headers["access-control-allow-private-network"] == "true"
    assert "access-control-allow-credentials" not in answer.headers

    for key, status in (("key-a", 200), ("wrong", 401)):
        headers = {"origin": origin, "x-api-key": key}
        for body in (HELLO, {**HELLO, "stream": True}):
            answer = ask(world, "POST", CHAT, name, json=body, headers=headers)
            assert answer.status_code == status, "a page reads refusals too"
            assert answer.headers["access-control-allow-origin"] == origin
            assert "origin" in answer.headers["vary"].lower()


def test_a_named_page_is_one_origin_and_no_name_of_the_endpoint(world: Any) -> None:
    def name(served: Any) -> None:
        served.hosts = frozenset({"https://app.example"})

    for origin in ("http://app.example", "https://app.example:444", "https://sub.app.example"):
        headers = {"origin": origin, "access-control-request-method": "POST"}
        answer = ask(world, "OPTIONS", CHAT, name, headers=headers)
        assert code_of(answer) == (403, "origin_not_allowed")
    for host in ("app.example", "https"):
        answer = ask(world, "GET", "/v1/models", name, headers={"host": host})
        assert code_of(answer) == (403, "host_not_allowed")


def test_pages_of_this_machine_and_of_allowed_hosts_may_ask(world: Any) -> None:
    for origin in ("http://localhost:3000", "http://127.0.0.1:8020", "http://[::1]:80", "HTTPS://LOCALHOST"):
        assert ask(world, "POST", CHAT, json=HELLO, headers={"origin": origin}).status_code == 200

    def allow(served: Any) -> None:
        served.hosts = frozenset({"workstation.lan"})

    headers = {"origin": "http://Workstation.lan:3000"}
    assert ask(world, "POST", CHAT, allow, json=HELLO, headers=headers).status_code == 200


def test_keys(world: Any) -> None:
    def lock(served: Any) -> None:
        served.keys = frozenset({"key-a", "ключ"})

    assert ask(world, "GET", "/v1/models", headers={"authorization": "Bearer sk-local"}).status_code == 200
    assert ask(world, "GET", "/v1/models", lock, headers={"authorization": "bearer key-a"}).status_code == 200
    assert ask(world, "GET", "/v1/models", lock, headers={"x-api-key": "key-a"}).status_code == 200
    for headers in ({}, {"authorization": "Bearer key-b"}, {"x-api-key": "key-"}, {"authorization": "key-a"}):
        answer = ask(world, "GET", "/v1/models", lock, headers=headers)
        assert code_of(answer) == (401, "invalid_api_key")
        assert answer.headers["www-authenticate"] == "Bearer"


def test_health_needs_no_key_and_says_nothing_else_without_one(world: Any) -> None:
    def lock(served: Any) -> None:
        served.keys = frozenset({"key-a"})

    assert ask(world, "GET", "/health", lock).json() == {"status": "ok"}
    assert ask(world, "GET", "/health", lock, headers={"x-api-key": "wrong"}).json() == {"status": "ok"}
    assert "models" in ask(world, "GET", "/health", lock, headers={"x-api-key": "key-a"}).json()


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_key_beyond_ascii(world: Any, encoding: str) -> None:
    def lock(served: Any) -> None:
        served.keys = frozenset({"clé", "ключ"})

    def status(key: bytes) -> int:
        return int(ask(world, "GET", "/v1/models", lock, headers=[(b"x-api-key", key)]).status_code)

    assert status("clé".encode(encoding)) == 200
    assert status("ключ".encode()) == 200
    for wrong in (b"????", b"cl?", b"\\u043a", "clè".encode(encoding)):
        assert status(wrong) == 401


def test_no_cors_headers(world: Any) -> None:
    answer = ask(world, "GET", "/v1/models", headers={"origin": "https://evil.example"})
    assert not [name for name in answer.headers if name.startswith("access-control")]
