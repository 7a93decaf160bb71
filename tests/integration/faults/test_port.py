"""The endpoint's port is taken by somebody else: before a start, and while the host runs."""

import socket
from collections.abc import Callable

import httpx

from engine_host.protocol.operations import table as ops
from tests.integration.faults.test_stopped import ask
from tests.integration.host.conftest import RunningHost, free_port, host, new_host, wait_for
from tests.integration.host_process import sndr

__all__ = ["host", "new_host"]


def taken() -> socket.socket:
    """A port that somebody else listens on."""
    other = socket.socket()
    other.bind(("127.0.0.1", 0))
    other.listen()
    return other


def test_a_change_to_a_port_that_is_taken_leaves_the_endpoint_reachable(host: RunningHost) -> None:
    engine = host.start()
    with taken() as other:
        port = int(other.getsockname()[1])
        changed = sndr("settings", "set", "endpoint.port", str(port))
        assert changed.code in {0, 6}, changed.err

        def reached() -> str | None:
            url = host.client.call(ops.HOST).endpoint.url or ""
            try:
                answer = httpx.get(f"{url}/models", trust_env=False, timeout=5)
            except httpx.TransportError:
                return None
            return url if answer.status_code == 200 else None

        url = wait_for(reached, "the endpoint at the address that is told", 10)
        assert f":{port}/" not in url
        host.port = int(url.split(":")[2].split("/")[0])
    assert ask(host, engine).status_code == 200


def test_a_port_that_was_taken_since_is_no_obstacle(
    new_host: Callable[..., RunningHost],
) -> None:
    port = free_port()
    assert sndr("settings", "set", "endpoint.port", str(port)).code == 0
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        ended = sndr("models")
        assert ended.code == 0, "a command starts a host of its own, on another port"
    assert new_host().connect().client.call(ops.HOST).endpoint.url


def test_a_port_that_gave_way_stays_until_one_is_set(new_host: Callable[..., RunningHost]) -> None:
    wanted, moved = free_port(), free_port()
    host = new_host().connect()
    (host.folders.data / "endpoint-port").write_text(f'{{"wanted": 8020, "port": {moved}}}')
    # The test's own is given on the command line; the settings hold from their first change on.
    assert sndr("settings", "set", "endpoint.port", str(wanted)).code == 0
    assert f":{wanted}/" in (host.client.call(ops.HOST).endpoint.url or "")
    assert sndr("settings", "unset", "endpoint.port").code == 0
    assert f":{moved}/" in (host.client.call(ops.HOST).endpoint.url or "")
    # Refused where another program has it now.
    back = sndr("settings", "set", "endpoint.port", "8020").code == 0
    assert (f":{moved}/" in (host.client.call(ops.HOST).endpoint.url or "")) is not back
