"""A start as a file for Docker Compose."""

from typing import Any

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
    rendering,
)
from engine_host.deploy.targets.quoting import bracketed, compose
from engine_host.deploy.targets.yaml_text import yaml_text
from engine_host.protocol.launch.deploy import RenderedFile, Rendering, RenderTarget

_VARIABLES = "SNDR_ADDRESS (an IPv6 one in brackets) and SNDR_PORT name another place than the one below."


def render(deployment: Deployment) -> Rendering:
    """The file, and the files beside it."""
    project: dict[str, Any] = {
        "name": deployment.name,
        "services": {"engine": _service(deployment)},
        "volumes": {"cache": {}},
    }
    text = yaml_text([project], (*heading(deployment), _VARIABLES))
    file = RenderedFile(name="compose.yaml", text=text, about="the service")
    return rendering(
        RenderTarget.COMPOSE,
        deployment,
        (file,),
        check="docker compose config --quiet",
        start="docker compose up --detach",
        stop="docker compose down",
    )


def _service(deployment: Deployment) -> dict[str, Any]:
    address = f"${{SNDR_ADDRESS:-{bracketed(deployment.address)}}}:${{SNDR_PORT:-{deployment.port}}}"
    service: dict[str, Any] = {
        "image": deployment.image,
        "container_name": deployment.name,
        "entrypoint": [deployment.entry[0]],
        "command": [compose(word, {}) for word in command(deployment)],
        "environment": {name: compose(value, INSIDE) for name, value in deployment.environment.items()},
        "env_file": [SECRETS],
        "labels": {name: compose(value, {}) for name, value in labels(deployment).items()},
        "ports": [f"{address}:{deployment.port}"],
        "volumes": _volumes(deployment),
        "shm_size": deployment.shm,
        "init": True,
        "restart": "unless-stopped",
        "stop_grace_period": f"{STOP_SECONDS}s",
        "security_opt": ["no-new-privileges:true"],
        "healthcheck": {
            "test": ["CMD", *(compose(word, {}) for word in health_command(deployment))],
            "interval": f"{HEALTH_SECONDS}s",
            "timeout": f"{HEALTH_TIMEOUT}s",
            "retries": HEALTH_RETRIES,
            "start_period": f"{deployment.start_seconds}s",
        },
    }
    if deployment.gpus.count:
        # One variable each: Compose makes no list of one.
        names = [f"${{SNDR_GPU_{number}:-{name}}}" for number, name in enumerate(gpu_names(deployment))]
        device = {"driver": "nvidia", "device_ids": names, "capabilities": ["gpu"]}
        service["deploy"] = {"resources": {"reservations": {"devices": [device]}}}
    return service


def _volumes(deployment: Deployment) -> list[dict[str, Any]]:
    volumes: list[dict[str, Any]] = []
    if deployment.overlay is not None:
        volumes.append(_bind(f"./{OVERLAY}", INSIDE[Root.OVERLAY], read_only=True))
        volumes.append(_bind("./ledger", INSIDE[Root.LEDGER]))
    for mount in deployment.mounts:
        place = f"{INSIDE[Root.MODELS]}/{mount.inside}"
        volumes.append(_bind(compose(str(mount.source), {}), compose(place, {}), read_only=True))
    if not deployment.local:
        source = f"${{SNDR_MODELS:-~/{models_in_home(deployment)}}}"
        volumes.append(_bind(source, INSIDE[Root.MODELS], read_only=bool(deployment.downloads)))
    volumes.append({"type": "volume", "source": "cache", "target": INSIDE[Root.CACHE]})
    return volumes


def _bind(source: str, target: str, *, read_only: bool = False) -> dict[str, Any]:
    bind: dict[str, Any] = {"type": "bind", "source": source, "target": target}
    return {**bind, "read_only": True} if read_only else {**bind, "bind": {"create_host_path": True}}
