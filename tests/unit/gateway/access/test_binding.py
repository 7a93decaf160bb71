"""The address and the port of the endpoint."""

import os
import socket

import pytest

from engine_host.core.addresses import is_loopback
from engine_host.core.errors import HostError
from engine_host.gateway import bind_endpoint
from engine_host.protocol.errors import Reason


def test_a_taken_port_moves_on_and_names_its_holder() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        wanted = taken.getsockname()[1]
        bound = bind_endpoint("127.0.0.1", wanted)
        try:
            assert bound.port > wanted
            assert bound.finding is not None
            assert bound.finding.reason is Reason.PORT_IN_USE
            assert f"(pid {os.getpid()})" in bound.finding.message
            assert str(bound.port) in bound.finding.message
            assert bound.finding.fix is not None
        finally:
            bound.socket.close()


def test_a_free_port_is_taken_without_a_word() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        wanted = probe.getsockname()[1]
    bound = bind_endpoint("127.0.0.1", wanted)
    bound.socket.close()
    assert (bound.port, bound.finding) == (wanted, None)


def test_the_network_needs_a_key() -> None:
    with pytest.raises(HostError, match="anybody in the network") as caught:
        bind_endpoint("0.0.0.0", 0)
    assert caught.value.reason is Reason.SETTING_INVALID
    bind_endpoint("0.0.0.0", 0, has_keys=True).socket.close()


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(HostError) as caught:
        bind_endpoint("192.0.2.1", 0, has_keys=True)
    assert caught.value.reason is Reason.SETTING_INVALID


def test_loopback() -> None:
    assert all(is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "[::1]", "127.9.9.9"))
    assert not any(is_loopback(host) for host in ("0.0.0.0", "192.168.0.2", "example.org", "::"))
