"""Facts as a host would tell them, and what a person is told to look at."""

import pytest

from engine_host.protocol.remote.hosts import (
    RemoteDisk,
    RemoteEngine,
    RemoteFacts,
    RemoteGpu,
    RemoteHost,
    RemoteMode,
)
from engine_host.remote.lints import changes, clock_off, ids_of, lints, port_of

GIB = 2**30
HOST = RemoteHost(name="gpu", destination="me@gpu", mode=RemoteMode.AGENTLESS, model_root="/srv/models")


def engine(*arguments: str, listens: tuple[str, ...] = ("127.0.0.1:8000",), pid: int = 7) -> RemoteEngine:
    """An engine of vLLM as it was found."""
    return RemoteEngine(kind="vllm", pid=pid, user="me", arguments=arguments, listens=listens)


def facts(*engines: RemoteEngine, **more: object) -> RemoteFacts:
    """Facts of which every part was read."""
    read = dict.fromkeys(("engines", "tools", "disks", "gpus"), 1000.0)
    return RemoteFacts.model_validate({"host": "gpu", "read_at": read, "engines": engines, **more})


def found(of: RemoteFacts, *profile: RemoteEngine, host: RemoteHost = HOST) -> list[str]:
    """The ids of the findings."""
    return [one.id for one in lints(host, of, profile)]


@pytest.mark.parametrize(
    ("listens", "ids"),
    [
        ("127.0.0.1:8000", []),
        ("[::1]:8000", []),
        ("10.0.0.4:8000", []),
        ("0.0.0.0:8000", ["host.open-to-all"]),
        ("*:8000", ["host.open-to-all"]),
        ("[::]:8000", ["host.open-to-all"]),
        (":::8000", ["host.open-to-all"]),
        ("8.8.8.8:8000", ["host.open-to-all"]),
        ("[2001:4860:4860::8888]:8000", ["host.open-to-all"]),
        ("fe80::1%eth0:8000", []),
        ("no address at all", []),
    ],
)
def test_an_engine_that_everybody_reaches(listens: str, ids: list[str]) -> None:
    assert found(facts(engine(listens=(listens,)))) == ids


def test_a_public_address_of_the_host() -> None:
    for address, ids in (("8.8.4.4", ["host.public-address"]), ("192.168.0.7", []), ("gpu.example", [])):
        assert found(facts(), host=HOST.model_copy(update={"address": address})) == ids


@pytest.mark.parametrize(
    "words",
    [("--served-model-name", "qwen3:27b"), ("--alias=qwen3:27b",), ("-a", "qwen3:27b", "--port", "8000")],
)
def test_ids_that_clients_break_on(words: tuple[str, ...]) -> None:
    (one,) = lints(HOST, facts(engine("serve", *words)))
    assert one.id == "host.id-for-clients"
    assert one.evidence["suggested"] == "qwen3-27b"
    assert "a colon" in one.message


def test_all_ids_of_an_engine() -> None:
    assert ids_of(engine("--served-model-name", "a", "b", "--port", "1")) == ("a", "b")
    assert ids_of(engine("--served-model-name")) == ()
    assert port_of(engine(listens=("x", "127.0.0.1:99999999", "127.0.0.1:8001"))) == 8001


def test_models_and_room_on_the_root_disk() -> None:
    root = RemoteDisk(device="/dev/sda1", mount="/", total=100 * GIB, free=50 * GIB, is_root=True)
    other = RemoteDisk(device="/dev/nvme0", mount="/srv", total=100 * GIB, free=1, holds_models=True)
    assert found(facts(disks=(root, other))) == []
    held = root.model_copy(update={"holds_models": True})
    assert found(facts(disks=(held,))) == ["host.models-on-root"]
    full = root.model_copy(update={"free": GIB})
    (one,) = lints(HOST, facts(disks=(full,)))
    assert one.id == "host.root-full"
    assert "1.0 of 100.0 GiB" in one.message


@pytest.mark.parametrize(
    ("ahead", "off"), [(3600.0, "differs by +3600 seconds"), (-90.0, "differs by -90 seconds")]
)
def test_a_clock_that_is_off(ahead: float, off: str) -> None:
    (one,) = lints(HOST, facts(clock_ahead=ahead))
    assert one.id == "host.clock"
    assert off in one.message
    assert clock_off(ahead) == ahead
    assert found(facts(clock_ahead=5.0)) == []
    assert clock_off(-1.0) == clock_off(None) == 0.0, "what the reading took is nobody's clock"


def test_compilers_are_missed_where_gpus_are_and_tools_were_looked_for() -> None:
    gpu = RemoteGpu(index=0, uuid="GPU-1", name="A card")
    (one,) = lints(HOST, facts(gpus=(gpu,), tools={"gcc": "/usr/bin/gcc"}))
    assert one.fix is not None
    assert one.fix.command == "sudo apt install ninja-build"
    assert found(facts(gpus=(gpu,), tools={"cc": "/usr/bin/cc", "ninja": "/usr/bin/ninja"})) == []
    assert found(facts()) == []
    assert found(facts(gpus=(gpu,), read_at={})) == []


def test_a_command_line_that_drifted_from_the_kept_one() -> None:
    kept = engine("serve", "m", "--port", "8000", "--max-model-len", "4096", "--eager")
    now = engine("serve", "m", "--port", "8000", "--max-model-len", "8192", pid=9)
    assert found(facts(kept), kept) == []
    (one,) = lints(HOST, facts(now), (kept,))
    assert one.id == "host.profile-drift"
    assert one.evidence["changes"] == ("- --max-model-len 4096", "- --eager", "+ --max-model-len 8192")
    assert found(facts(), kept) == ["host.profile-gone"]
    assert found(facts(read_at={}), kept) == [], "engines were not looked for"
    ours = [engine("serve", "--uds", f"/run/plan-{name}.sock") for name in ("4c2d0ec6", "c1e83af5")]
    assert found(facts(ours[0]), ours[1]) == [], "its socket has another name at each start"
    assert changes(engine("--a", "--b"), engine("--b", "--a")) == ("their order",)


def test_engines_of_a_kind_without_ports_are_told_apart_by_their_arguments() -> None:
    one, two = (
        engine("serve", "--uds", f"/run/plan-{name}.sock", "--alias", name) for name in ("aa11", "bb22")
    )
    again = engine("serve", "--uds", "/run/plan-cc33.sock", "--alias", "aa11", pid=9)
    longer = engine("serve", "--uds", "/run/plan-cc33.sock", "--alias", "aa11", "--context", "9", pid=9)
    assert found(facts(two, again), one, two) == []
    (drift,) = lints(HOST, facts(two, longer), (one, two))
    assert drift.evidence["changes"] == ("+ --context 9",)
    assert found(facts(two), one, two) == ["host.profile-gone"]
    assert found(facts(one, one), one) == []
