"""A start written down for something else to carry out: a shell, containers, a service manager, a cluster."""

from enum import StrEnum

from pydantic import Field

from engine_host.protocol.base import Command, Wire
from engine_host.protocol.plans import Finding, LaunchRequest


class RenderTarget(StrEnum):
    """What a start is written down for."""

    SHELL = "shell"
    DOCKER = "docker"
    PODMAN = "podman"
    COMPOSE = "compose"
    QUADLET = "quadlet"
    KUBERNETES = "kubernetes"
    SYSTEMD = "systemd"


class RenderRequest(Command):
    """Write a start down; without `hardware` for this machine.

    `hardware` is an id of the catalogue; without a `count` as many GPUs as the preset needs.
    """

    launch: LaunchRequest
    target: RenderTarget
    hardware: str | None = None
    count: int | None = Field(None, ge=1, le=8)


class RenderedFile(Wire):
    """One file; its name is relative to the folder that all of them go to."""

    name: str
    text: str
    executable: bool = False
    about: str = ""


class Rendering(Wire):
    """The files, and the commands that use them; a finding says what a person has to fill in or know."""

    target: RenderTarget
    files: tuple[RenderedFile, ...]
    check: str = Field("", description="the command that checks the files; empty where there is none")
    start: str
    stop: str
    findings: tuple[Finding, ...] = ()
