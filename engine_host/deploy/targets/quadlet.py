"""A start as a Quadlet: a unit from which Podman makes a service of systemd."""

import json

from engine_host.core.errors import HostError
from engine_host.deploy.deployment import INSIDE, Deployment, Root
from engine_host.deploy.targets.container import command, gpu_names
from engine_host.deploy.targets.parts import (
    HEALTH_RETRIES,
    HEALTH_SECONDS,
    HEALTH_TIMEOUT,
    OVERLAY,
    SECRETS,
    STOP_SECONDS,
    health_command,
    labels,
    models_in_home,
)
from engine_host.deploy.targets.quoting import bracketed, unit, unit_value
from engine_host.deploy.targets.service import RESTARTS, service_rendering
from engine_host.deploy.targets.units import command_line, folder_of
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.deploy import Rendering, RenderTarget

_GENERATOR = "/usr/lib/systemd/system-generators/podman-system-generator"


def render(deployment: Deployment) -> Rendering:
    """The unit with its watchdog, and the files beside it.

    Raises HostError(unsupported) for a model whose path has a colon.
    """
    service = (
        *RESTARTS,
        # Podman fetches the image before the service counts as started.
        ("TimeoutStartSec", "3600"),
        ("TimeoutStopSec", str(STOP_SECONDS + 30)),
    )
    return service_rendering(
        RenderTarget.QUADLET,
        deployment,
        (("Container", _container(deployment)), ("Service", service)),
        about="the container",
        check=f'QUADLET_UNIT_DIRS="$PWD" {_GENERATOR} --user --dryrun',
        stop=f"systemctl --user stop {deployment.name}.service",
    )


def _container(deployment: Deployment) -> list[tuple[str, str]]:
    folder = folder_of(deployment)
    entries = [
        ("Image", deployment.image),
        ("ContainerName", deployment.name),
        # `Entrypoint=` and `StopTimeout=` are not known to Podman 4.
        ("PodmanArgs", f"--entrypoint={deployment.entry[0]}"),
        ("PodmanArgs", f"--stop-timeout={STOP_SECONDS}"),
        ("RunInit", "true"),
        ("NoNewPrivileges", "true"),
        ("SecurityLabelDisable", "true"),
        ("PublishPort", f"{bracketed(deployment.address)}:{deployment.port}:{deployment.port}"),
        ("ShmSize", str(deployment.shm)),
        ("EnvironmentFile", f"{folder}/{SECRETS}"),
    ]
    entries += [("AddDevice", f"nvidia.com/gpu={gpu}") for gpu in gpu_names(deployment)]
    entries += [("Volume", one) for one in _volumes(deployment)]
    for name, value in deployment.environment.items():
        entries.append(("Environment", unit_value(f"{name}={value}", INSIDE)))
    entries += [("Label", unit_value(f"{name}={value}", {})) for name, value in labels(deployment).items()]
    entries += [
        ("HealthCmd", _health(deployment)),
        ("HealthInterval", f"{HEALTH_SECONDS}s"),
        ("HealthTimeout", f"{HEALTH_TIMEOUT}s"),
        ("HealthRetries", str(HEALTH_RETRIES)),
        ("HealthStartPeriod", f"{deployment.start_seconds}s"),
        ("HealthOnFailure", "kill"),
        ("Exec", command_line([unit(word, {}) for word in command(deployment)])),
    ]
    return entries


def _health(deployment: Deployment) -> str:
    """As a JSON list, which Podman runs without a shell."""
    return json.dumps(["CMD", *health_command(deployment)]).replace("%", "%%")


def _volumes(deployment: Deployment) -> list[str]:
    folder = folder_of(deployment)
    volumes = []
    if deployment.overlay is not None:
        volumes.append(f"{folder}/{OVERLAY}:{INSIDE[Root.OVERLAY]}:ro")
        volumes.append(f"{folder}/ledger:{INSIDE[Root.LEDGER]}")
    for mount in deployment.mounts:
        source, place = str(mount.source), f"{INSIDE[Root.MODELS]}/{mount.inside}"
        if ":" in source + place:
            raise HostError(
                Reason.UNSUPPORTED,
                tr("A Quadlet cannot mount {source}: it has a colon.", source=source),
                cause="There a colon ends the path on this machine, and the path in the container follows.",
                fix="Give the model's files a path without one.",
                evidence={"path": source},
            )
        volumes.append(unit_value(f"{source}:{place}:ro", {}))
    if not deployment.local:
        mode = ":ro" if deployment.downloads else ""
        volumes.append(f"%h/{models_in_home(deployment)}:{INSIDE[Root.MODELS]}{mode}")
    return [*volumes, f"{deployment.name}-cache:{INSIDE[Root.CACHE]}"]
