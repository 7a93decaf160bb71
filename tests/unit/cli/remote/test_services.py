"""The commands that are suggested for services: they are there, and say all that was given."""

import shlex
from typing import Any

import click
import pytest

from engine_host.cli.remote.services import can_install
from engine_host.cli.remote.services import install_command as way_there
from engine_host.cli.root import root
from engine_host.cli.text.typed_again import typed_again
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.launch.plans import LaunchRequest
from engine_host.protocol.remote.services import InstallService, ManagerState, ServiceManager, ServicePage
from engine_host.remote.services.commands import install_command, list_command

_GPU = "GPU-3f2c1a90-5b1e-4c52-9d3e-0a6f1b7c8d11"
LAUNCH = LaunchRequest(
    preset="demo-llamacpp",
    name="public",
    overrides=Overrides.model_validate({"context": 4096, "variables": ["A=b c"]}),
)
ALL: dict[str, Any] = {
    "port": 8123,
    "name": "of-mine",
    "gpus": (_GPU,),
    "model_path": "/srv/my models/m.gguf",
    "program": "/opt/llama-server",
    "rehydrate": False,
    "enable": False,
    "start": False,
    "replace": True,
    "force": True,
    "consent": "d" * 64,
}


def read(line: str) -> click.Context:
    """What a command line says to its command."""
    words = shlex.split(line)[1:]
    command: click.Command = root
    path = "sndr"
    while isinstance(command, click.Group):
        path = f"{path} {words[0]}"
        command = command.commands[words.pop(0)]
    return command.make_context(path, words)


@pytest.mark.parametrize("manager", list(ServiceManager))
def test_a_suggested_install_says_every_field(manager: ServiceManager) -> None:
    line = install_command("gpu", InstallService(launch=LAUNCH, manager=manager, **ALL))
    assert line.startswith(f"sndr host {'unit' if manager == 'systemd' else 'container'} install gpu demo-")
    said = read(line).params
    assert said.get("manager", "systemd") == manager.value, "Podman does not become Docker"
    assert (said["machine"], said["preset"], said["name"]) == ("gpu", "demo-llamacpp", "public")
    assert (said["service_name"], said["port"], said["gpu"]) == ("of-mine", 8123, (_GPU,))
    assert (said["model_path"], said["program"]) == (ALL["model_path"], ALL["program"])
    assert said["rehydrate"] is False
    assert (said["enable"], said["start"], said["replace"], said["force"]) == (False, False, True, True)
    assert said["accept"] == ALL["consent"]
    assert (said["context"], said["env"]) == (4096, ("A=b c",))


def test_a_suggested_install_says_nothing_that_is_usual() -> None:
    asked = InstallService(launch=LaunchRequest(preset="demo-llamacpp"))
    assert install_command("gpu", asked) == "sndr host unit install gpu demo-llamacpp"
    assert install_command("local", asked) == "sndr launch demo-llamacpp --in systemd"
    said = read(install_command("local", asked.model_copy(update={"replace": True, "port": 9000}))).params
    assert (said["replace"], said["port"]) == (True, 9000)


@pytest.mark.parametrize("host", ["gpu", "local"])
@pytest.mark.parametrize("manager", list(ServiceManager))
def test_the_list_that_is_named_is_there(host: str, manager: ServiceManager) -> None:
    assert read(shlex.join(list_command(host, manager)))


@pytest.mark.parametrize(
    "line",
    [
        "sndr host unit install --context 4096 --port 9000 --rehydrate --no-enable --replace gpu demo",
        "sndr host container install --in podman --model-path '/a b' --gpu 0 --gpu 1 gpu demo",
        "sndr launch --in docker --force -- -x",
    ],
)
def test_what_was_typed_is_said_again_but_for_the_consent(line: str) -> None:
    before, dashes, after = line.partition(" -- ")
    context = read(f"{before} --accept {'d' * 64}{dashes}{after}")
    with context:
        again = typed_again("accept")
    assert "--accept" not in again
    assert read(again).params == {**context.params, "accept": None}


@pytest.mark.parametrize(
    ("host", "usable", "command"),
    [
        ("gpu", {"systemd": True}, "sndr host unit install gpu PRESET"),
        ("gpu", {"systemd": False}, "sndr host container install gpu PRESET"),
        ("gpu", {"docker": False, "podman": False}, "sndr host unit install gpu PRESET"),
        (
            "gpu",
            {"systemd": False, "docker": False, "podman": True},
            "sndr host container install gpu PRESET",
        ),
        ("gpu", {"systemd": False, "docker": False, "podman": False}, "sndr --host gpu launch PRESET"),
        ("local", {"systemd": False, "docker": False, "podman": True}, "sndr launch PRESET --in podman"),
        ("local", {"systemd": False, "docker": False, "podman": False}, "sndr launch PRESET"),
    ],
)
def test_what_cannot_be_used_there_is_not_offered(host: str, usable: dict[str, bool], command: str) -> None:
    states = tuple(ManagerState(manager=ServiceManager(one), usable=yes) for one, yes in usable.items())
    page = ServicePage(host=host, read_at=1.0, managers=states, services=())
    assert way_there(page) == command
    assert can_install(page) is ("install" in command or "--in" in command)
