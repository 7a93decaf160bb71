"""The spec of a start to write down: a preset on other hardware, or a plan of this machine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine_host.deploy.deployment import Gpus, Mount, Overlay
from engine_host.engines.llamacpp.servers import ServerCapabilities
from engine_host.protocol.catalog import PresetEngine, Task, WeightFile
from engine_host.protocol.launch.plans import Finding


@dataclass(frozen=True, slots=True)
class ModelSource:
    """The place of the model: `path` on this machine, or in a repository of Hugging Face.

    `parts` are all files of a GGUF model here. For a model of another machine `path` is there, `mounts` are
    what a container mounts for it, and `inside` is its place in that. `files` are those that have to be
    fetched one by one; without any the engine fetches the repository itself.
    """

    title: str
    path: Path | None = None
    parts: tuple[Path, ...] = ()
    mounts: tuple[Mount, ...] = ()
    inside: str = ""
    repository: str | None = None
    revision: str | None = None
    files: tuple[WeightFile, ...] = ()
    size: int | None = None
    tokenizer: bool = True
    tasks: tuple[Task, ...] = ()


@dataclass(frozen=True, slots=True)
class Patched:
    """The overlay of a start of vLLM, and what its command line and its variables get for it."""

    overlay: Overlay
    argv: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeploySpec:
    """A start to write down; `values` are its resolved settings by name.

    `native` is for engines that run without a container; then `python` or `server` are those of this machine,
    None on another one. `version` is vLLM's, None for the one that this program installs now.
    """

    id: str
    title: str
    alias: str
    engine: PresetEngine
    values: Mapping[str, Any]
    gpus: Gpus
    model: ModelSource
    native: bool
    patched: Patched | None = None
    version: str | None = None
    python: Path | None = None
    server: ServerCapabilities | None = None
    port: int = 8000
    address: str = "127.0.0.1"
    findings: tuple[Finding, ...] = ()

    def text(self, name: str, default: str) -> str:
        """A setting as text."""
        value = self.values.get(name)
        return default if value is None else str(value)

    def number(self, name: str, default: int) -> int:
        """A setting as a whole number."""
        value = self.values.get(name)
        return default if value is None else int(value)

    def extra(self) -> tuple[str, ...]:
        """The arguments that are handed on as they are."""
        return tuple(map(str, self.values.get("extra_arguments") or ()))
