"""The commands that do on services what an operation does."""

import shlex

from engine_host.launch.equivalent_command import equivalent_command
from engine_host.protocol.remote.hosts import THIS_MACHINE
from engine_host.protocol.remote.services import InstallService, ServiceManager


def group_of(host: str, manager: ServiceManager) -> list[str]:
    """Return the words with which the commands on services of a machine begin."""
    if host == THIS_MACHINE:
        return ["sndr", "services"]
    return ["sndr", "host", "unit" if manager is ServiceManager.SYSTEMD else "container"]


def list_command(host: str, manager: ServiceManager) -> list[str]:
    """Return the command that lists the services of a machine."""
    return [*group_of(host, manager), "list", *([] if host == THIS_MACHINE else [host])]


def install_command(host: str, asked: InstallService) -> str:
    """Return the command that does the same; hardware of the catalogue has no option for another machine."""
    here = host == THIS_MACHINE
    launch = asked.launch.model_copy(update={"keep": False, "instead_of": None})
    if here:
        command = equivalent_command(launch)
    else:
        launch = launch.model_copy(
            update={"model": launch.preset or launch.model, "preset": None, "gpus": ()}
        )
        verb = [*group_of(host, asked.manager)[1:], "install", host]
        command = equivalent_command(launch, verb)
    words = []
    if here or asked.manager is not ServiceManager.SYSTEMD:
        words += ["--in", asked.manager.value]
    if asked.rehydrate is not None:
        words.append("--rehydrate" if asked.rehydrate else "--no-rehydrate")
    if not here:
        words += ["--service-name", asked.name] if asked.name else []
        words += [word for gpu in asked.gpus for word in ("--gpu", gpu)]
        words += ["--model-path", asked.model_path] if asked.model_path else []
        words += ["--program", asked.program] if asked.program else []
        words += [] if asked.start else ["--no-start"]
        words += [] if asked.enable else ["--no-enable"]
    words += ["--port", str(asked.port)] if asked.port != InstallService.model_fields["port"].default else []
    words += ["--replace"] if asked.replace else []
    words += ["--force"] if asked.force else []
    words += ["--accept", asked.consent] if asked.consent else []
    return f"{command} {shlex.join(words)}".rstrip()
