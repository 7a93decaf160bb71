"""The changes of an install, from what a machine says of itself."""

from typing import Any

import pytest

from engine_host.protocol.launch.deploy import RenderTarget
from engine_host.protocol.launch.plans import LaunchRequest
from engine_host.protocol.remote.services import InstallService, ServiceManager
from engine_host.remote.services.answers import ComparedFile, FoundService, Inspected, Usable
from engine_host.remote.services.plan import Wanted, decide, wanted_of
from tests.unit.deploy import samples


def wanted(**asked: Any) -> Wanted:
    install = InstallService(launch=LaunchRequest(model="", preset="demo"), **asked)
    return wanted_of(
        "gpu", install, samples.deployed(samples.wanted_of("demo-llamacpp"), RenderTarget.SYSTEMD), 4096
    )


def said(of: Wanted, **more: Any) -> Inspected:
    """What a machine says where it is there just so."""
    manager = ServiceManager.SYSTEMD
    service = {"manager": manager, "name": of.name, "state": "running", "enabled": True}
    return Inspected(
        home="/srv/a",
        folder="/srv/a/f",
        usable=more.pop("usable", Usable(manager=manager, usable=True)),
        files=tuple(ComparedFile(path=f"/f/{one.name}", state="same") for one in of.files),
        gone=(),
        preset="demo",
        manager=manager.value,
        service=FoundService.model_validate(service | more.pop("service", {})),
        **more,
    )


def test_the_same_twice_changes_nothing() -> None:
    of = wanted()
    assert decide(of, said(of)).unchanged


@pytest.mark.parametrize(
    ("asked", "there"),
    [
        pytest.param({}, {"unfinished": True}, id="files of an update that was cut off, and the old process"),
        pytest.param({"enable": False}, {}, id="it shall not start with the machine"),
        pytest.param({}, {"service": {"enabled": False}}, id="somebody disabled it"),
        pytest.param({}, {"service": {"state": "failed"}}, id="it does not run"),
    ],
)
def test_what_is_not_as_asked_is_done(asked: dict[str, Any], there: dict[str, Any]) -> None:
    of = wanted(**asked)
    plan = decide(of, said(of, **there))
    assert not plan.unchanged
    assert any(f"restart {of.name}.service" in one.what for one in plan.changes)


def test_where_units_cannot_be_used_the_container_of_the_same_preset_is_named() -> None:
    of = wanted()
    found = decide(of, said(of, usable=Usable(manager=of.manager, usable=False, why="No bus?"))).findings[0]
    assert found.fix is not None
    assert found.fix.command == "sndr host container install gpu demo"
    assert found.message == "systemd cannot be used on gpu: No bus?"
