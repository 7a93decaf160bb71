"""The next command for services of another machine; the host is FAKE."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.cli.fake_host import FakeHost

Sndr = Callable[..., tuple[int, str, str]]
GPU: dict[str, Any] = {
    "name": "gpu", "destination": "me@gpu", "mode": "agentless",
    "state": "connected", "sentence": "Connected.",
}  # fmt: skip


@pytest.fixture
def gpu(host: FakeHost) -> FakeHost:
    """A host that is connected to a machine with Podman, and without systemd, where nothing was installed."""
    host.answers["GET /v1/hosts/gpu"] = (200, GPU)
    host.answers["POST /v1/hosts/gpu/connect"] = (200, GPU)
    managers = [
        {"manager": "systemd", "usable": False, "why": "systemctl is not installed"},
        {"manager": "docker", "usable": False, "why": "Is the docker daemon running?"},
        {"manager": "podman", "usable": True},
    ]
    page = {"host": "gpu", "read_at": 1.0, "managers": managers, "services": []}
    host.answers["GET /v1/hosts/gpu/services"] = (200, page)
    return host


@pytest.mark.usefixtures("gpu")
def test_where_nothing_is_the_command_is_one_that_works_there(sndr: Sndr) -> None:
    code, out, err = sndr("host", "container", "list", "gpu")
    assert code == 0, err
    assert "sndr host container install gpu PRESET" in out
    assert "cannot be used there: Is the docker daemon running?\n" in out


def test_logs_of_nothing_name_what_has_lines(gpu: FakeHost, sndr: Sndr) -> None:
    err = sndr("host", "logs", "gpu")[2]
    assert "There is no service of ours." in err
    assert " NAME" not in err
    gpu.answers["GET /v1/hosts/gpu"] = (200, GPU | {"mode": "engine_host"})
    assert "$ sndr --host gpu logs" in sndr("host", "logs", "gpu")[2]


def test_a_host_without_a_watchdog_says_how_one_comes(gpu: FakeHost, sndr: Sndr) -> None:
    gpu.answers["GET /v1/hosts/gpu/watchdogs"] = (200, {"host": "gpu", "read_at": 1.0, "watchdogs": []})
    assert "sndr host unit install gpu PRESET" in sndr("host", "watch", "gpu")[1]


def test_a_staging_offers_no_option_that_ends_an_engine(sndr: Sndr) -> None:
    said = sndr("host", "stage", "--help")[1]
    assert "--context" in said
    assert "--replace" not in said
    assert "--instead-of" not in said
    assert sndr("host", "stage", "gpu", "m", "--replace")[0] == 2
