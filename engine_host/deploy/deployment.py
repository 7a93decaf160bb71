"""One start as something else will carry it out, before it is written down for anybody."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path, PurePath
from urllib.parse import quote

from engine_host.core.errors import HostError
from engine_host.protocol.catalog import PresetEngine
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import Finding
from engine_host.protocol.text import first_break

HUB = "https://huggingface.co"
_LONGEST_NAME = 48


class Root(StrEnum):
    """Folders whose place depends on who carries the start out.

    They stand in arguments and variables by these marks, which no real text holds; each target puts its own
    paths there.
    """

    OVERLAY = "\x01overlay\x01"
    LEDGER = "\x01ledger\x01"
    CACHE = "\x01cache\x01"
    MODELS = "\x01models\x01"


# Where things are inside of every container.
INSIDE = {
    Root.OVERLAY: "/sndr/overlay",
    Root.LEDGER: "/sndr/ledger",
    Root.CACHE: "/sndr/cache",
    Root.MODELS: "/sndr/models",
}


@dataclass(frozen=True, slots=True)
class Gpus:
    """The GPUs of a start: so many, and which where that is known; none is the processor."""

    count: int
    uuids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that is named and never written down."""

    variable: str
    about: str


@dataclass(frozen=True, slots=True)
class Download:
    """One file that can be fetched; size in bytes. `file` is a path, or a name below the folder of models."""

    address: str
    file: str
    size: int | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or folder of this machine, and its place below the models of a container."""

    source: Path
    inside: str


@dataclass(frozen=True, slots=True)
class Overlay:
    """The patches of a start as files, by their path in the bundle."""

    digest: str
    patches: tuple[str, ...]
    files: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Check:
    """The smallest request that shows that the engine still computes."""

    path: str
    body: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Deployment:
    """Everything that any target needs.

    `program` runs the engine on a machine, `image` and `entry` in a container; `arguments` follow either, and
    say neither address nor port. `here`: `program` is known to be there. `stripped` are beginnings of
    variables that must not come from a shell. `mounts` are the model's files of this machine, none where it
    is fetched. `files` are those of a model that is there already; `again` is what the watchdog may fetch
    when it is gone, `awaited`: who sent it brings it. `patience` is how many checks in a row may fail before
    it counts as hung. Bytes and seconds.
    """

    name: str
    title: str
    alias: str
    engine: PresetEngine
    version: str
    program: tuple[str, ...]
    image: str
    entry: tuple[str, ...]
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    secrets: tuple[Secret, ...]
    gpus: Gpus
    shm: int
    start_seconds: int
    patience: int
    check: Check
    model: str
    stripped: tuple[str, ...] = ()
    here: bool = False
    fetched_by_engine: bool = False
    downloads: tuple[Download, ...] = ()
    files: tuple[str, ...] = ()
    again: tuple[Download, ...] = ()
    awaited: bool = False
    local: bool = False
    mounts: tuple[Mount, ...] = ()
    model_size: int | None = None
    overlay: Overlay | None = None
    port: int = 8000
    address: str = "127.0.0.1"
    health: str = "/health"
    findings: tuple[Finding, ...] = field(default=())

    @property
    def fetched(self) -> tuple[Download, ...]:
        """The files that `download.sh` fetches."""
        return self.downloads or self.again

    def listening(self, address: str) -> tuple[str, ...]:
        """The arguments with an address to listen on; every engine calls them the same."""
        return (*self.arguments, "--host", address, "--port", str(self.port))


def hub_address(repository: str, revision: str, file: str) -> str:
    """Return the address of a file of Hugging Face."""
    return f"{HUB}/{repository}/resolve/{revision}/{quote(file)}"


def name_of(text: str) -> str:
    """A name that containers, units and clusters take: RFC 1123 letters, digits and hyphens."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "engine"
    if len(plain) > _LONGEST_NAME:
        plain = f"{plain[: _LONGEST_NAME - 7].strip('-')}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"
    return plain if plain == "sndr" or plain.startswith("sndr-") else f"sndr-{plain}"


def placed(text: str, roots: Mapping[Root, str]) -> str:
    """A text with the target's own paths in the place of the marks."""
    for root, path in roots.items():
        text = text.replace(root, path)
    return text


def refuse_control_characters(deployment: Deployment) -> None:
    """Raise HostError(setting_invalid) for text that no unit file, script or YAML can carry through.

    Every string of the deployment is looked at; the patches' sources are files of their own, and findings
    are not written down.
    """
    written = replace(deployment, findings=(), overlay=None)
    for text in _texts(asdict(written)):
        plain = placed(text, dict.fromkeys(Root, ""))
        if first_break(plain) is not None:
            raise HostError(
                Reason.SETTING_INVALID,
                tr(
                    "{plain} cannot be written down: it has a line break or another control character.",
                    plain=repr(plain[:60]),
                ),
                cause="In a unit file or a script a line break begins another setting or command.",
                fix="Give the value without it.",
                evidence={"value": plain[:200]},
            )


def _texts(value: object) -> Iterator[str]:
    """Every string within a value, names of keys and paths included."""
    if isinstance(value, str | PurePath):
        yield str(value)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
