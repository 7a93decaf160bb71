"""Addresses of providers, and their keys."""

import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from engine_host.core.errors import HostError
from engine_host.gateway.routing.provider import address_of, key_of, leaves_machine
from engine_host.protocol.endpoint.routes import Provider, RouteTargets
from engine_host.protocol.errors import Reason

WHOLE = {"url": "https://x/v1", "model": "m", "context": 512}


def provider(url: str = "https://api.example.com/v1", **more: str) -> Provider:
    return Provider(url=url, model="m", context=4096, **more)


@pytest.mark.parametrize(
    ("url", "name", "leaves"),
    [
        ("https://api.example.com/v1", "api.example.com", True),
        ("https://api.example.com:8443/v1/", "api.example.com:8443", True),
        ("http://127.0.0.1:9000/v1", "127.0.0.1:9000", False),
        ("http://localhost:9000", "localhost:9000", False),
        ("http://[::1]:9000/v1", "[::1]:9000", False),
        ("unix:/run/user/1000/tunnel.sock", "/run/user/1000/tunnel.sock", False),
    ],
)
def test_addresses(url: str, name: str, leaves: bool) -> None:
    assert address_of(url).name == name
    assert leaves_machine(provider(url)) is leaves


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example.com/v1",
        "http://192.168.1.7:8000/v1",
        "http://127.0.0.1.example.com/v1",
        "http://localhost@example.com/v1",
        "https://user:sk-secret@example.com/v1",
        "https://example.com/v1?key=sk-secret",
        "https://example.com/v1#sk-secret",
        "ftp://example.com",
        "file:///etc/passwd",
        "https://",
        "https://[::1",
        "https://example.com:99999/v1",
        "unix:relative.sock",
        "example.com/v1",
        "https://exa..mple.com",
        "https://.example.com/v1",
        f"https://{'a' * 64}.example.com/v1",
        "https://b\u00fccher.example/v1",
        "https://\u043f\u0440\u0438\u043c\u0435\u0440.example/v1",
        "https://example.com/v1/\u00fc",
        "https://example.com/v1/\u4e2d",
        "https://example.com/v1 /x",
        "https://exa mple.com/v1",
        "http://127.0.0.1:9000/a b",
        "http://127.0.0.1:9000/\u202ev1",
    ],
)
def test_addresses_that_are_not_to_be_trusted(url: str) -> None:
    with pytest.raises(HostError) as refused:
        address_of(url)
    assert refused.value.reason is Reason.SETTING_INVALID
    assert "sk-secret" not in refused.value.problem.model_dump_json()


@pytest.mark.parametrize("url", ["https://example.com/v1\r\nX-Injected: 1", "https://exa\x00mple.com"])
def test_breaks_are_refused_on_the_wire(url: str) -> None:
    with pytest.raises(ValidationError):
        provider(url)


def test_a_key_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    there = provider(key_variable="SNDR_TEST_KEY")
    monkeypatch.delenv("SNDR_TEST_KEY", raising=False)
    with pytest.raises(HostError) as refused:
        key_of(there)
    assert refused.value.reason is Reason.UNAUTHORIZED
    monkeypatch.setenv("SNDR_TEST_KEY", " sk-1\n")
    assert key_of(there) == "sk-1"
    monkeypatch.setenv("SNDR_TEST_KEY", "sk-1\r\nX-Injected: 1")
    with pytest.raises(HostError) as refused:
        key_of(there)
    assert "sk-1" not in refused.value.problem.model_dump_json()


def test_a_key_from_a_file_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "key"
    there = provider(key_file=str(file))
    with pytest.raises(HostError):
        key_of(there)
    file.write_text("sk-2\n")
    file.chmod(0o644)
    with pytest.raises(HostError) as refused:
        key_of(there)
    assert "chmod 600" in str(refused.value.problem.fix)
    file.chmod(0o600)
    assert key_of(there) == "sk-2"
    file.unlink()
    os.mkfifo(file, 0o600)
    with pytest.raises(HostError):
        key_of(there)


def test_no_key_where_none_is_named() -> None:
    assert key_of(provider()) is None


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"engines": ["a", "a"]},
        {"engines": ["a"], "fallback": True},
        {"engines": ["a\nb"]},
        {"engines": ["a"], "allow": True},
        {"provider": {"url": "https://x/v1", "model": "m", "context": 512, "key": "sk-1"}},
        {"provider": {"url": "https://x/v1", "model": "m"}},
        {"provider": {"url": "https://x/v1", "model": "m", "context": 512, "key_variable": "A B"}},
        {
            "provider": {
                "url": "https://x/v1",
                "model": "m",
                "context": 512,
                "key_variable": "A",
                "key_file": "b",
            }
        },
    ],
)
def test_what_is_no_route(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        RouteTargets.model_validate(given)
