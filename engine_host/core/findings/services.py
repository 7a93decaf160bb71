"""Findings about services: units and containers, here and on other machines."""

from engine_host.core.findings.text import ERROR, INFO, WARNING, Text
from engine_host.protocol.errors import Reason

SERVICES = {
    "service.changed-there": Text(
        ERROR,
        "Somebody changed files of {name} on {host} since they were written: {paths}.",
        reason=Reason.CONFLICT,
        fix="Keep what was changed, or write over it with --replace; the diff shows both.",
    ),
    "service.engine-missing": Text(
        ERROR,
        "{program} is not on the PATH of the units on {host}, and the unit runs it.",
        reason=Reason.ENGINE_UNUSABLE,
        fix="Name where it is with --program PATH, install it there, or take a container: {container}.",
    ),
    "service.foreign": Text(
        ERROR,
        "{host} has {what} {name} already, which is none of ours.",
        reason=Reason.CONFLICT,
        fix="Give the service another name with {option}.",
    ),
    "service.model-missing": Text(
        ERROR,
        "{host} has no {paths}.",
        reason=Reason.MODEL_FILE_MISSING,
        fix="Send the model there first, or name where it is with --model-path.",
        command="sndr host send {host} MODEL",
    ),
    "service.model-large": Text(
        ERROR,
        "The model is a file of this machine with {size:gib} GiB; {host} does not have it.",
        reason=Reason.MODEL_FILE_MISSING,
        fix="Send it there first, and name where it is with --model-path.",
        command="sndr host send {host} MODEL",
    ),
    "service.no-source": Text(
        ERROR,
        "It is not known where {paths} came from, so no watchdog could bring it again.",
        reason=Reason.NOT_FOUND,
        fix="Send it there from here, which is then its source, or leave --rehydrate out.",
        command="sndr host send {host} MODEL --to {folder}",
    ),
    "service.no-watchdog": Text(
        ERROR,
        "A container has no watchdog that could bring its model again.",
        reason=Reason.UNSUPPORTED,
        fix="Install it as a unit, or leave --rehydrate out.",
        command="sndr host unit install {host} {preset} --rehydrate",
    ),
    "service.no-gpu": Text(
        ERROR,
        "The preset needs {needed} GPUs, and {host} shows {seen}.",
        reason=Reason.UNSUPPORTED,
        fix="Take another machine, or read its facts anew.",
        command="sndr host probe {host}",
    ),
    "service.no-linger": Text(
        WARNING,
        "Services of this user on {host} end with its last session, and lingering is off.",
        fix="It is tried to be set; where that is not permitted, an administrator there runs the command.",
        command="sudo loginctl enable-linger {user}",
    ),
    "service.not-after-restart": Text(
        INFO,
        "Podman does not bring {name} back after a restart of {host}; a unit of systemd comes back.",
        fix="Start it again then, or install the preset as a unit.",
    ),
    "service.other-start": Text(
        ERROR,
        "{name} on {host} is another start: {what}.",
        reason=Reason.CONFLICT,
        fix="Give this one another name with {option}, remove that one, or take its place with --replace.",
    ),
    "service.port-taken": Text(
        ERROR,
        "Port {port} on {host} is taken by something else.",
        reason=Reason.PORT_IN_USE,
        fix="Take another one with --port.",
    ),
    "service.restarts": Text(
        WARNING,
        "{name} runs now and is started anew: requests that it answers just now may fail.",
        fix="Do it when nobody uses it.",
    ),
    "service.route-agentless": Text(
        INFO,
        "The endpoint here finds engines in units and containers of agentless hosts.",
        fix="Keep {host} as one if requests are to be led there.",
        command="sndr host change {host} --agentless",
    ),
    "service.unusable": Text(
        ERROR,
        "{manager} cannot be used on {host}: {why}.",
        reason=Reason.UNSUPPORTED,
        fix="Take a container there; engines of this program's engine host run without it, too.",
        command="sndr host container install {host} {preset}",
    ),
    "service.unusable/here": Text(
        ERROR,
        "{manager} cannot be used on {host}: {why}.",
        reason=Reason.UNSUPPORTED,
        fix="Start it as an engine of this host, or take another manager with --in.",
        command="sndr launch {preset}",
    ),
    "service.unusable/container": Text(
        ERROR,
        "{manager} cannot be used on {host}: {why}.",
        reason=Reason.UNSUPPORTED,
        fix="Install and start it there, let this user use it, or take a unit of systemd.",
    ),
    "service.unfinished": Text(
        INFO,
        "An install of {name} was cut off on {host}; what ran before it is what a failure brings back.",
    ),
    "power.bounds": Text(
        ERROR,
        "{watts} W is outside of what {gpu} takes: {minimum:.0f} to {maximum:.0f} W.",
        reason=Reason.SETTING_INVALID,
        fix="Give a value between them, or --reset for the default.",
    ),
    "power.not-permitted": Text(
        ERROR,
        "Power limits of {host} cannot be set by this user: {why}.",
        reason=Reason.NOT_WRITABLE,
        fix="An administrator of that machine runs the command there.",
        command="{argv}",
    ),
    "power.not-kept": Text(
        INFO, "The limit is the driver's: it is the default again after a restart of the machine."
    ),
    "power.unknown/none": Text(
        ERROR,
        "{host} has no GPU {gpu} whose power limit can be read[: {why}].",
        reason=Reason.NOT_FOUND,
        fix="Limits are read with nvidia-smi of NVIDIA's driver: it has to work for that user there.",
    ),
    "power.unknown": Text(
        ERROR,
        "{host} has no GPU {gpu} whose power limit can be read[: {why}].",
        reason=Reason.NOT_FOUND,
        fix="See which there are.",
        command="{command}",
    ),
}
