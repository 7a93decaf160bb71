"""The endpoint follows its settings while the host runs, and never keeps the host from starting."""

import json
from collections.abc import Callable

import httpx
import pytest

from engine_host._errors import HostError
from engine_host.folders import Folders
from engine_host.protocol.host import HostInfo, Reach
from engine_host.protocol.settings import SettingPage, SettingsChange
from tests.integration.host.conftest import RunningHost, free_port


def health(port: int) -> int:
    """The status that the endpoint on this port answers with; 0 when nobody listens."""
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False, timeout=5).status_code
    except httpx.ConnectError:
        return 0


def test_a_new_port_holds_at_once(host: RunningHost) -> None:
    port = free_port()
    assert health(host.port) == 200

    host.client.put("/v1/settings", SettingPage, SettingsChange(values={"endpoint.port": port}))

    assert host.client.get("/v1/host", HostInfo).endpoint.url == f"http://127.0.0.1:{port}/v1"
    assert health(port) == 200
    assert health(host.port) == 0


def test_the_network_is_refused_without_a_key_and_nothing_changes(host: RunningHost) -> None:
    with pytest.raises(HostError, match="anybody in the network"):
        host.client.put("/v1/settings", SettingPage, SettingsChange(values={"endpoint.host": "0.0.0.0"}))
    assert host.client.get("/v1/host", HostInfo).endpoint.reach is Reach.THIS_MACHINE
    assert health(host.port) == 200


def test_an_address_that_cannot_be_taken_gives_way(new_host: Callable[..., RunningHost]) -> None:
    settings = Folders.resolve().settings
    settings.parent.mkdir(parents=True)
    settings.write_text('[endpoint]\nhost = "0.0.0.0"\n', encoding="utf-8")

    host = new_host().connect()

    assert host.client.get("/v1/host", HostInfo).endpoint.reach is Reach.THIS_MACHINE
    findings = json.loads(host.first_line)["findings"]
    assert [finding["id"] for finding in findings] == ["endpoint_address"]
    assert health(host.port) == 200
