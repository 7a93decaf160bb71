"""The endpoint follows its settings while the host runs, and never keeps the host from starting."""

import json
import socket
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from engine_host.core.errors import HostError
from engine_host.core.paths import Folders
from engine_host.protocol.endpoint.keys import CreateKey
from engine_host.protocol.errors import Reason
from engine_host.protocol.host import Reach
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import table as ops
from engine_host.protocol.settings import SettingsChange
from tests import certificates
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

    host.client.call(ops.CHANGE_SETTINGS, SettingsChange(values={"endpoint.port": port}))

    assert host.client.call(ops.HOST).endpoint.url == f"http://127.0.0.1:{port}/v1"
    assert health(port) == 200
    assert health(host.port) == 0


def test_the_network_is_refused_without_a_key_and_nothing_changes(host: RunningHost) -> None:
    with pytest.raises(HostError, match="anybody in the network"):
        host.client.call(ops.CHANGE_SETTINGS, SettingsChange(values={"endpoint.host": "0.0.0.0"}))
    assert host.client.call(ops.HOST).endpoint.reach is Reach.THIS_MACHINE
    assert health(host.port) == 200


def test_what_cannot_be_taken_is_refused_where_it_is_set(host: RunningHost) -> None:
    with_a_key()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for name, value, reason in (
            ("endpoint.host", "banana.invalid", Reason.SETTING_INVALID),
            ("endpoint.port", taken.getsockname()[1], Reason.PORT_IN_USE),
        ):
            with pytest.raises(HostError, match="Nothing was changed") as caught:
                host.client.call(ops.CHANGE_SETTINGS, SettingsChange(values={name: value}))
            assert caught.value.reason is reason
    assert not Folders.resolve().settings.exists()
    assert health(host.port) == 200


def test_an_address_that_cannot_be_taken_gives_way(new_host: Callable[..., RunningHost]) -> None:
    settings = Folders.resolve().settings
    settings.parent.mkdir(parents=True)
    settings.write_text('[endpoint]\nhost = "0.0.0.0"\n', encoding="utf-8")

    host = new_host().connect()

    assert host.client.call(ops.HOST).endpoint.reach is Reach.THIS_MACHINE
    findings = json.loads(host.first_line)["findings"]
    assert [finding["id"] for finding in findings] == ["endpoint_address"]
    assert health(host.port) == 200


def with_a_key(key: str = "key-a") -> None:
    """Write the file of API keys."""
    keys = Folders.resolve().config / "api-keys"
    keys.parent.mkdir(parents=True, exist_ok=True)
    keys.write_text(f"{key}\n", encoding="utf-8")
    keys.chmod(0o600)


def test_on_the_network_the_address_that_is_shown_answers_and_so_does_the_one_from_here(
    host: RunningHost,
) -> None:
    with_a_key()
    host.client.call(ops.CHANGE_SETTINGS, SettingsChange(values={"endpoint.host": "0.0.0.0"}))

    endpoint = host.client.call(ops.HOST).endpoint
    assert endpoint.reach is Reach.NETWORK
    assert endpoint.key_required
    assert endpoint.local_url == f"http://127.0.0.1:{endpoint.port}/v1"
    assert endpoint.url is not None
    assert "0.0.0.0" not in endpoint.url
    for url in (endpoint.url, endpoint.local_url):
        models = f"{url}/models"
        assert httpx.get(models, trust_env=False).status_code == 401
        assert httpx.get(models, headers={"x-api-key": "key-a"}, trust_env=False).status_code == 200
    foreign = {"x-api-key": "key-a", "host": "evil.example"}
    assert httpx.get(f"{endpoint.url}/models", headers=foreign, trust_env=False).status_code == 403


def test_it_speaks_tls_when_both_files_are_named_and_below_a_path(host: RunningHost, home: Path) -> None:
    certificate, key = certificates.write(home)
    port = free_port()
    for values in (
        {"endpoint.port": port, "endpoint.tls_certificate": certificate},
        {"endpoint.tls_key": key},
        {"endpoint.path": "/llm"},
    ):
        host.client.call(ops.CHANGE_SETTINGS, SettingsChange(values=values))
    url = host.client.call(ops.HOST).endpoint.local_url
    assert url == f"https://127.0.0.1:{port}/llm/v1"
    trusted = certificates.trusting()
    assert httpx.get(f"{url}/models", verify=trusted, trust_env=False).json()["data"] == []
    plain = f"https://127.0.0.1:{port}/health"
    assert httpx.get(plain, verify=trusted, trust_env=False).status_code == 200
    host.client.call(ops.CHANGE_SETTINGS, SettingsChange(values={"endpoint.tls_key": None}))
    assert health(port) == 200


def test_a_certificate_that_is_gone_keeps_no_host_from_starting(
    new_host: Callable[..., RunningHost], home: Path
) -> None:
    with_a_key()
    certificate, key = certificates.write(home)
    settings = Folders.resolve().settings
    settings.write_text(
        f'[endpoint]\nhost = "0.0.0.0"\ntls_certificate = "{certificate}"\ntls_key = "{key}.gone"\n',
        encoding="utf-8",
    )

    host = new_host().connect()

    endpoint = host.client.call(ops.HOST).endpoint
    assert endpoint.reach is Reach.THIS_MACHINE, "never in the open what was to be encrypted"
    assert endpoint.url is not None
    assert endpoint.url.startswith("http:")
    (finding,) = json.loads(host.first_line)["findings"]
    assert "key.pem.gone" in finding["message"]


def test_a_key_is_needed_as_soon_as_one_is_made_and_no_longer_than_it_lasts(host: RunningHost) -> None:
    url = f"http://127.0.0.1:{host.port}/v1/models"
    assert httpx.get(url, trust_env=False).status_code == 200
    made = host.client.call(endpoint_ops.CREATE_KEY, CreateKey(name="laptop"))
    assert httpx.get(url, trust_env=False).status_code == 401
    assert httpx.get(url, headers={"x-api-key": made.key}, trust_env=False).status_code == 200
    metrics = f"http://127.0.0.1:{host.port}/metrics"
    assert httpx.get(metrics, headers={"x-api-key": made.key}, trust_env=False).status_code == 403
    own = host.client.call(endpoint_ops.OWN_KEY).key
    assert own is not None
    text = httpx.get(metrics, headers={"x-api-key": own}, trust_env=False).text
    assert 'sndr_refusals_total{code="permission_missing"} 1' in text
    # The first sample is taken as the host starts; a machine has GPUs or says why it has none.
    assert "sndr_host_memory_used_bytes{" in text
    assert "sndr_gpu_memory_used_bytes{" in text or "sndr_gpu_absent{" in text
    assert host.client.call(ops.HOST).endpoint.key_required
    host.client.call(endpoint_ops.REVOKE_KEY, id="laptop")
    assert httpx.get(url, trust_env=False).status_code == 200
    kept = (Folders.resolve().config / "keys.json").read_text(encoding="utf-8")
    assert made.key not in kept
