"""The renderer of each target."""

from collections.abc import Callable, Mapping

from engine_host.deploy.deployment import Deployment
from engine_host.deploy.targets import compose, kubernetes, quadlet, shell, systemd
from engine_host.deploy.targets.container import render_docker, render_podman
from engine_host.protocol.launch.deploy import Rendering, RenderTarget

# Targets that run the engine on the machine itself, without a container.
NATIVE = frozenset({RenderTarget.SHELL, RenderTarget.SYSTEMD})
_TARGETS: Mapping[RenderTarget, Callable[[Deployment], Rendering]] = {
    RenderTarget.SHELL: shell.render,
    RenderTarget.DOCKER: render_docker,
    RenderTarget.PODMAN: render_podman,
    RenderTarget.COMPOSE: compose.render,
    RenderTarget.QUADLET: quadlet.render,
    RenderTarget.KUBERNETES: kubernetes.render,
    RenderTarget.SYSTEMD: systemd.render,
}


def render(deployment: Deployment, target: RenderTarget) -> Rendering:
    """Write a deployment down. Raises HostError(unsupported) for what a target cannot hold."""
    return _TARGETS[target](deployment)
