"""By which names and addresses this machine is reached."""

import socket

import pytest

from engine_host.core.addresses import (
    address_from_here,
    address_from_network,
    check_own,
    is_address,
    own_names,
)
from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason


def test_numbers_are_told_from_names() -> None:
    assert all(is_address(name) for name in ("127.0.0.1", "10.0.0.7", "::1", "[fd00::7]", "0.0.0.0"))
    assert not any(is_address(name) for name in ("", "localhost", "10.0.0.7.example", "10.0.7", "0x7f000001"))


def test_the_machine_has_its_own_name() -> None:
    assert socket.gethostname().lower() in own_names()
    assert "" not in own_names()


def test_an_address_for_everywhere_is_never_told_to_anybody() -> None:
    assert address_from_here("0.0.0.0") == "127.0.0.1"
    assert address_from_here("::") == "::1"
    assert address_from_network("0.0.0.0") != "0.0.0.0"
    assert is_address(address_from_network("0.0.0.0"))
    assert is_address(address_from_network("::"))
    assert address_from_here("10.0.0.7") == address_from_network("10.0.0.7") == "10.0.0.7"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0"])
def test_own_addresses_are_taken(host: str) -> None:
    check_own(host)  # Raises HostError for another machine's.
    assert is_address(address_from_here(host)) or host == "localhost"


@pytest.mark.parametrize("host", ["no-such-name.invalid", "198.51.100.9", "a..b", "x" * 300])
def test_what_is_not_here_is_refused_with_what_is(host: str) -> None:
    with pytest.raises(HostError, match="no address of this machine") as caught:
        check_own(host)
    assert caught.value.reason is Reason.SETTING_INVALID
    assert caught.value.problem.fix is not None
    assert "127.0.0.1" in caught.value.problem.fix.text


def test_a_port_that_is_taken_is_refused_with_its_holder() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(HostError, match="is used by") as caught,
    ):
        check_own("127.0.0.1", taken.getsockname()[1])
    assert caught.value.reason is Reason.PORT_IN_USE
