"""A start written down for something else to carry out: a shell, containers, a service manager, a cluster."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from engine_host.protocol.base import Command, Wire
from engine_host.protocol.launch.plans import Finding, LaunchRequest

GpuUuid = Annotated[str, Field(pattern=r"^(GPU|MIG)-[0-9A-Za-z/-]{8,80}$")]


class RenderTarget(StrEnum):
    """The target that a start is written down for."""

    SHELL = "shell"
    DOCKER = "docker"
    PODMAN = "podman"
    COMPOSE = "compose"
    QUADLET = "quadlet"
    KUBERNETES = "kubernetes"
    SYSTEMD = "systemd"


class RenderRequest(Command):
    """Write a start down; without `hardware` for this machine, with its GPUs, engines and model files.

    `hardware` is an id of the catalogue: then nothing of this machine is in it, and what the start needs is
    fetched there. Without a `count` as many GPUs as the preset needs. A start that has an error is refused,
    unless it is asked for by `force`.
    """

    launch: LaunchRequest
    target: RenderTarget
    hardware: str | None = None
    count: int | None = Field(None, ge=1, le=8)
    gpus: tuple[GpuUuid, ...] = Field((), max_length=16, description="the GPUs to take, by UUID")
    port: int = Field(8000, ge=1, le=65535)
    address: str = Field("127.0.0.1", pattern=r"^[0-9a-fA-F.:]+$", description="who may reach the port")
    force: bool = Field(False, description="also when a finding says that it would not start")
    consent: str | None = Field(None, description="the digest of what a preset from somebody else asks for")


class RenderedFile(Wire):
    """One file; its name is relative to the folder that all of them go to.

    `keep`: a person fills it in, so one that is there already stays, and nobody else may read it.
    """

    name: str
    text: str
    executable: bool = False
    keep: bool = False
    about: str = ""


class Rendering(Wire):
    """The files, and the commands that use them; a finding says what a person has to fill in or know."""

    target: RenderTarget
    name: str = Field(description="of the container, the unit or the deployment")
    title: str
    files: tuple[RenderedFile, ...]
    check: str = Field("", description="the command that checks the files; empty where there is none")
    start: str
    stop: str
    findings: tuple[Finding, ...] = ()
