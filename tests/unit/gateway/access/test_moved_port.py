"""A port that gave way once: the endpoint stays where clients were told to ask, until somebody sets one."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine_host.core.keys.ring import KeyRing
from engine_host.core.settings import EndpointSettings
from engine_host.daemon.public_endpoint import PublicEndpoint
from engine_host.gateway.access.moved_port import MovedPort

WANTED = 23_517


@contextmanager
def taken(port: int) -> Iterator[None]:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
        other.listen()
        yield


@pytest.fixture
def wanted() -> int:
    """A port that is free with the two after it."""
    for port in range(WANTED, WANTED + 3000, 3):
        try:
            with taken(port), taken(port + 1), taken(port + 2):
                return port
        except OSError:
            continue
    raise AssertionError("no three ports are free")


def started(folder: Path, wanted: int, *, is_set: bool = False, asked: int | None = None) -> PublicEndpoint:
    """An endpoint that took its port and gave it back, as at a start of the host that has ended."""
    moved = MovedPort(folder / "endpoint-port", lambda: is_set)
    endpoint = PublicEndpoint(lambda: EndpointSettings(port=wanted), KeyRing([]), lambda _event: None, moved)
    endpoint.bind(port=asked)
    endpoint._bound.socket.close()
    return endpoint


def test_it_stays_where_it_went_also_when_the_other_is_free_again(tmp_path: Path, wanted: int) -> None:
    with taken(wanted):
        first = started(tmp_path, wanted)
    (finding,) = first.findings
    assert (finding.id, finding.fix and finding.fix.command) == (
        "port_moved",
        f"sndr settings set endpoint.port {wanted}",
    )
    second = started(tmp_path, wanted)
    assert first.describe().port == second.describe().port == wanted + 1
    assert second.describe().wanted_port == wanted
    assert not second.findings


def test_the_kept_one_that_is_taken_gives_way_in_its_turn(tmp_path: Path, wanted: int) -> None:
    with taken(wanted):
        started(tmp_path, wanted)
        with taken(wanted + 1):
            third = started(tmp_path, wanted)
    assert third.describe().port == wanted + 2
    assert third.findings[0].message.startswith(f"Port {wanted + 1} is used by")
    assert third.findings[0].evidence["wanted"] == wanted
    assert started(tmp_path, wanted).describe().port == wanted + 2


def test_one_that_is_set_or_asked_for_is_tried_each_time(tmp_path: Path, wanted: int) -> None:
    with taken(wanted):
        moved = started(tmp_path, wanted, is_set=True)
        assert (moved.describe().port, moved.findings[0].id) == (wanted + 1, "port_in_use")
        assert started(tmp_path, wanted, asked=wanted).findings[0].id == "port_in_use"
        started(tmp_path, wanted)
    assert started(tmp_path, wanted, is_set=True).describe().port == wanted
    assert started(tmp_path, wanted, asked=wanted).describe().port == wanted
    assert started(tmp_path, wanted + 2).describe().port == wanted + 2, "another one is wanted now"


@pytest.mark.parametrize("damaged", ["", "{", "[]", '{"wanted": 1}', "1", "\\ud800", *(
    f'{{"wanted": WANTED, "port": {port}}}' for port in ("null", '"1"', "true", "0", "65536")
)])  # fmt: skip
def test_a_damaged_file_says_nothing(damaged: str, tmp_path: Path, wanted: int) -> None:
    (tmp_path / "endpoint-port").write_text(damaged.replace("WANTED", str(wanted)))
    assert started(tmp_path, wanted).describe().port == wanted


def test_where_nothing_can_be_kept_it_moves_for_this_time(tmp_path: Path, wanted: int) -> None:
    (tmp_path / "file").touch()
    with taken(wanted):
        moved = started(tmp_path / "file", wanted)
    assert (moved.describe().port, moved.findings[0].id) == (wanted + 1, "port_in_use")
