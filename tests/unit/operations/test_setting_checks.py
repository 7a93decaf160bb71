"""Settings that could not take effect are refused where they are set; those that mean nothing are said."""

import socket
from pathlib import Path
from typing import Any

import pytest

from engine_host.core.errors import HostError
from engine_host.operations.setting_checks import check_endpoint, doubts
from engine_host.protocol.errors import Reason


@pytest.mark.parametrize("host", ["banana.invalid", "198.51.100.9"])
def test_an_address_that_is_not_here_is_refused_for_that_reason(host: str) -> None:
    with pytest.raises(HostError, match=r"no address of this machine.*Nothing was changed") as caught:
        check_endpoint({"endpoint.host": host}, "127.0.0.1", 8020)
    assert caught.value.reason is Reason.SETTING_INVALID
    assert caught.value.problem.evidence["key"] == "endpoint.host"


def test_a_port_of_somebody_else_is_refused_and_the_one_held_now_is_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        check_endpoint({"endpoint.port": port}, "127.0.0.1", port)
        with pytest.raises(
            HostError, match=rf"endpoint\.port cannot be {port}: Port {port} is used by"
        ) as caught:
            check_endpoint({"endpoint.port": port}, "127.0.0.1", 8020)
    assert caught.value.reason is Reason.PORT_IN_USE


@pytest.mark.parametrize("value", [None, "", 5, True, "many", -1, 70000, [1]])
def test_values_of_a_wrong_type_are_left_to_the_settings(value: Any) -> None:
    given = {"endpoint.port": value, "models.folders": []}
    check_endpoint(given, "127.0.0.1", 5)
    if not isinstance(value, str) or not value:
        check_endpoint({"endpoint.host": value}, "127.0.0.1", 5)
    assert doubts(given, Path("nowhere")) == ()


def test_folders_and_patches_that_nobody_knows_are_said(tmp_path: Path) -> None:
    given = {
        "models.folders": [str(tmp_path), str(tmp_path / "nowhere")],
        "patches.off": ["json-whitespace-limt", "json-whitespace-limit"],
        "patches.on": "all",
    }
    found = doubts(given, tmp_path / "patches")
    assert [one.evidence["key"] for one in found] == ["models.folders", "patches.off"]
    assert "nowhere" in found[0].message
    assert "json-whitespace-limt" in found[1].message
    assert doubts({"models.folders": None, "engine.streams": 3}, tmp_path) == ()
