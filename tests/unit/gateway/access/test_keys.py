"""Who may ask: each way in which clients send a key, what a key permits, and hostile keys."""

import asyncio
import base64
from typing import Any

import httpx
import pytest

from engine_host.core.keys.ring import Key, KeyRing, digest_of
from engine_host.gateway.access.authentication import check_key
from engine_host.gateway.error_answers import EndpointError
from engine_host.protocol.endpoint.keys import Permission
from tests.unit.gateway.asking import CHAT, HELLO, ask, code_of


def key(text: str, *permissions: Permission) -> Key:
    """A key as it is kept."""
    return Key(f"id-{text}", f"name-{text}", frozenset(permissions), digest_of(text.encode()), 0.0)


RING = KeyRing([key("asks", Permission.INFER), key("sees", Permission.ADMIN), key("a:b", Permission.INFER)])


def basic(text: str) -> dict[str, str]:
    """The header of a password."""
    return {"authorization": "Basic " + base64.b64encode(text.encode()).decode()}


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        ({"authorization": "Bearer asks"}, "name-asks"),
        ({"authorization": "bearer  asks "}, "name-asks"),
        ({"x-api-key": "asks"}, "name-asks"),
        ({"authorization": "Bearer sk-dummy", "x-api-key": "asks"}, "name-asks"),
        (basic("anybody:asks"), "name-asks"),
        (basic(":a:b"), "name-a:b"),
        ({"authorization": f"Bearer {RING.own}"}, "SNDR Control Center"),
    ],
)
def test_a_key_is_found_wherever_a_client_sends_it(headers: dict[str, str], name: str) -> None:
    found = check_key(headers, RING, Permission.INFER)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer"},
        {"authorization": "Bearer ask"},
        {"authorization": "asks"},
        {"authorization": "Basic asks"},
        {"authorization": "Basic =?=?"},
        {"authorization": "Basic " + "A" * 60_000},
        {"x-api-key": "\xff\x00ÿ"},
        {"x-api-key": "☃"},
        {"x-api-key": digest_of(b"asks")},
        {"cookie": "asks"},
        basic("asks:"),
    ],
)
def test_anything_else_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(EndpointError) as refused:
        check_key(headers, RING, Permission.INFER)
    assert (refused.value.status, refused.value.code) == (401, "invalid_api_key")
    assert "asks" not in refused.value.message


def test_a_key_that_may_ask_may_not_see() -> None:
    with pytest.raises(EndpointError) as refused:
        check_key({"x-api-key": "asks"}, RING, Permission.ADMIN)
    assert (refused.value.status, refused.value.code) == (403, "permission_missing")
    assert check_key({"x-api-key": "sees"}, RING, Permission.INFER) is not None


def test_without_keys_any_will_do() -> None:
    assert check_key({"x-api-key": "sk-local"}, KeyRing(), Permission.ADMIN) is None


def test_each_answer_of_401_has_the_form_of_who_asks(world: Any) -> None:
    def lock(served: Any) -> None:
        served.keys = frozenset({"key-a"})

    assert code_of(ask(world, "POST", CHAT, lock, json=HELLO)) == (401, "invalid_api_key")
    messages = ask(world, "POST", "/v1/messages", lock, json=HELLO).json()
    assert messages["error"]["type"] == "authentication_error"
    assert isinstance(ask(world, "GET", "/api/tags", lock).json()["error"], str)


def test_the_log_of_requests_has_the_keys_name_and_never_the_key(world: Any) -> None:
    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url) as client:
            served.engine.go.set()
            served.keys = frozenset({"secret-key"})
            await client.post(CHAT, json=HELLO, headers={"x-api-key": "secret-key"})
            (request,) = served.gateway.request_log.requests()
            assert request.key == "name of secret-key"
            assert "key" in served.events[-1].request.model_dump()

    asyncio.run(go())


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({}, ("Authorization: Bearer", "x-api-key", "sndr keys create")),
        ({"x-api-key": "x"}, ("sndr keys list",)),
    ],
)
def test_a_refusal_says_how_a_key_is_sent_and_had(headers: dict[str, str], told: tuple[str, ...]) -> None:
    with pytest.raises(EndpointError) as refused:
        check_key(headers, RING, Permission.INFER)
    assert all(word in refused.value.message for word in told)
