"""Commands as they are typed for another machine."""

import pytest

from engine_host.protocol.remote.host_command import for_host


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("sndr status", "sndr --host gpu status"),
        ("Start one: `sndr run --demo`, or `sndr launch x`.",
         "Start one: `sndr --host gpu run --demo`, or `sndr --host gpu launch x`."),
        ("sndr host connect gpu", "sndr host connect gpu"),
        ("sndr serve", "sndr serve"),
        ("sndr connect zed --write", "sndr connect zed --write"),
        ("sndr hosted", "sndr --host gpu hosted"),
        ("sndr --host gpu status", "sndr --host gpu status"),
        ("sndr-gui starts", "sndr-gui starts"),
        ("ssh gpu", "ssh gpu"),
    ],
)  # fmt: skip
def test_each_of_our_commands_names_the_host(here: str, there: str) -> None:
    assert for_host(here, "gpu") == there
    assert for_host(for_host(here, "gpu"), "gpu") == there
    assert for_host(here, "") == here
