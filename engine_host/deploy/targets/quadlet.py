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
    heading,
    health_command,
    labels,
    models_in_home,
    shared_files,
)
from engine_host.deploy.targets.quoting import bracketed, unit, unit_plain, unit_value
from engine_host.deploy.targets.units import (
    QUADLET_FOLDER,
    SYSTEMD_FOLDER,
    Section,
    command_line,
    folder_of,
    install_script,
    unit_text,
)
from engine_host.deploy.watchdog import UNITS as WATCHDOG_UNITS
from engine_host.deploy.watchdog import watchdog_files
from engine_host.protocol.deploy import RenderedFile, Rendering, RenderTarget
from engine_host.protocol.errors import Reason

_GENERATOR = "/usr/lib/systemd/system-generators/podman-system-generator"


def render(deployment: Deployment) -> Rendering:
    """The unit with its watchdog, and the files beside it.

    Raises HostError(unsupported) for a model whose path has a colon.
    """
    name = deployment.name
    sections: list[Section] = [
        (
            "Unit",
            (
                ("Description", unit_plain(deployment.title, {})),
                ("StartLimitIntervalSec", "600"),
                ("StartLimitBurst", "5"),
            ),
        ),
        ("Container", _container(deployment)),
        (
            "Service",
            (
                ("Restart", "on-failure"),
                ("RestartSec", "10"),
                # Podman fetches the image before the service counts as started.
                ("TimeoutStartSec", "3600"),
                ("TimeoutStopSec", str(STOP_SECONDS + 30)),
            ),
        ),
        ("Install", (("WantedBy", "default.target"),)),
    ]
    container = RenderedFile(
        name=f"{name}.container", text=unit_text(heading(deployment), sections), about="the container"
    )
    others = ["watchdog.py", *(["download.sh"] if deployment.downloads else [])]
    install = install_script(deployment, QUADLET_FOLDER, [container.name], others)
    install = _with_watchdog(deployment, install)
    fetch = "./download.sh && " if deployment.downloads else ""
    return Rendering(
        target=RenderTarget.QUADLET,
        name=name,
        title=deployment.title,
        files=(container, *watchdog_files(deployment), install, *shared_files(deployment)),
        check=f'QUADLET_UNIT_DIRS="$PWD" {_GENERATOR} --user --dryrun',
        start=f"{fetch}./install.sh",
        stop=f"systemctl --user stop {name}.service",
        findings=deployment.findings,
    )


def _with_watchdog(deployment: Deployment, install: RenderedFile) -> RenderedFile:
    """The watchdog's units are systemd's own and belong into its folder."""
    copies = "".join(
        f'install -D -m 644 "$here/{name}" "$HOME/{SYSTEMD_FOLDER}/{name}"\n'
        for name in (pattern.format(name=deployment.name) for pattern in WATCHDOG_UNITS)
    )
    return install.model_copy(
        update={
            "text": install.text.replace(
                "systemctl --user daemon-reload", f"{copies}systemctl --user daemon-reload"
            )
        }
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
                f"A Quadlet cannot mount {source}: it has a colon.",
                fix="Give the model's files a path without one.",
                evidence={"path": source},
            )
        volumes.append(unit_value(f"{source}:{place}:ro", {}))
    if not deployment.local:
        mode = ":ro" if deployment.downloads else ""
        volumes.append(f"%h/{models_in_home(deployment)}:{INSIDE[Root.MODELS]}{mode}")
    return [*volumes, f"{deployment.name}-cache:{INSIDE[Root.CACHE]}"]
