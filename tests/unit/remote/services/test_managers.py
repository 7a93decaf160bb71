"""Units and containers as systemd, Docker and Podman tell of them."""

import json
from subprocess import CompletedProcess

import pytest

from engine_host.remote.services.there import managers

CHECK = "535fa4bc5701879d60dfbd968cd3c7c86cc64866b9f6f06bf6f0428785b4c3c9"


def says(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Let every program print this."""

    def attempt(argv: list[str], _seconds: float) -> "CompletedProcess[str]":
        return CompletedProcess(argv, 0, text, "")

    monkeypatch.setattr(managers, "attempt", attempt)


@pytest.mark.parametrize(
    ("tool", "policy", "back"),
    [
        ("docker", "unless-stopped", True),
        ("docker", "always", True),
        ("docker", "no", False),
        ("podman", "unless-stopped", False),
        ("podman", "no", False),
        ("podman", "always", None),
    ],
)
def test_podman_brings_no_container_back_after_a_restart_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, tool: str, policy: str, back: bool | None
) -> None:
    told = {"Name": "a", "State": {"Status": "running"}, "HostConfig": {"RestartPolicy": {"Name": policy}}}
    says(monkeypatch, json.dumps([told]))
    assert managers.container(tool, "a")["enabled"] is back


@pytest.mark.parametrize(("word", "health"), [("running", "healthy"), ("exited", None)])
def test_a_container_that_ended_is_not_called_healthy(
    monkeypatch: pytest.MonkeyPatch, word: str, health: str | None
) -> None:
    told = {"Name": "a", "State": {"Status": word, "ExitCode": 0, "Health": {"Status": "healthy"}}}
    says(monkeypatch, json.dumps([told]))
    assert managers.container("podman", "a")["health"] == health


def test_the_checks_of_containers_are_no_services(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("mine.service", f"{CHECK}.service", f"{CHECK}-5d6efa25b6c3a0b4.service")
    says(monkeypatch, "\n\n".join(f"Id={name}\nLoadState=loaded\nActiveState=active" for name in names))
    assert [one["name"] for one in managers.units("*.service")] == ["mine"]
