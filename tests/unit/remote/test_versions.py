"""A host of another version is used, and its version is said."""

import pytest

from engine_host import __version__
from engine_host.protocol.base import PROTOCOL_MAJOR, PROTOCOL_MINOR
from engine_host.remote.versions import standing

PROTOCOL = f"{PROTOCOL_MAJOR}.{PROTOCOL_MINOR}"


@pytest.mark.parametrize(
    ("program", "protocol", "said"),
    [
        (__version__, PROTOCOL, None),
        ("0.0.9", PROTOCOL, "remote.older"),
        ("sndr 0.0.9", PROTOCOL, "remote.older"),
        ("sndr 0.2.0", PROTOCOL, "remote.older"),
        ("99.1", f"{PROTOCOL_MAJOR}.{PROTOCOL_MINOR + 1}", "remote.newer"),
        (__version__, f"{PROTOCOL_MAJOR}.{PROTOCOL_MINOR + 1}", "remote.newer"),
        ("\x1b[2J$(reboot)" * 1000, "1.99999999999", None),
        ("", "", None),
        (None, None, None),
    ],
)
def test_only_another_version_is_spoken_of(
    program: str | None, protocol: str | None, said: str | None
) -> None:
    found = standing("gpu", program, protocol)
    assert [one.id for one in found] == ([said] if said else [])


def test_an_older_one_is_offered_the_update() -> None:
    (found,) = standing("gpu", "0.0.9", PROTOCOL)
    assert found.fix is not None
    assert found.fix.command == "sndr host update gpu"
