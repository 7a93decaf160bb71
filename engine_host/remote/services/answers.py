"""The answers of the steps on services, read with care: they may be anybody's."""

from typing import Annotated

from pydantic import Field

from engine_host.protocol.remote.services import GpuPower, ServiceLine, ServiceManager, ServiceState
from engine_host.remote.install.answers import MachineAnswer, Word

_MANY = 1000
_LONG = 1 << 20


class Usable(MachineAnswer):
    """A manager of services there."""

    manager: ServiceManager
    usable: bool
    why: Word = ""


class FoundService(MachineAnswer):
    """A unit or a container there, with what was written down of one of ours."""

    manager: ServiceManager
    name: Word
    title: Word | None = ""
    there: bool = True
    state: ServiceState = ServiceState.UNKNOWN
    detail: Word = ""
    enabled: bool | None = None
    health: Word | None = None
    pid: int | None = None
    restarts: int | None = None
    image: Word | None = None
    ours: bool = False
    preset: Word | None = None
    model: Word | None = None
    engine: Word | None = None
    address: Word | None = None
    changed: Annotated[tuple[Word, ...], Field(max_length=_MANY)] = ()
    watchdog: Word | None = None


class Surveyed(MachineAnswer):
    """All services there."""

    managers: tuple[Usable, ...]
    services: Annotated[tuple[FoundService, ...], Field(max_length=_MANY)]


class ComparedFile(MachineAnswer):
    """A file that is to be written: `same`, `new`, `kept`, `changed` by us, or changed `by_hand`."""

    path: Word
    state: Word
    text: Annotated[str, Field(max_length=_LONG)] = ""


class Inspected(MachineAnswer):
    """All that an install would touch, as it is now."""

    home: Word
    folder: Word
    usable: Usable
    files: Annotated[tuple[ComparedFile, ...], Field(max_length=_MANY)]
    gone: Annotated[tuple[Word, ...], Field(max_length=_MANY)]
    preset: Word = ""
    manager: Word | None = None
    unfinished: bool = False
    service: FoundService
    user: Word = ""
    lingers: bool | None = None
    missing: tuple[Word, ...] = ()
    programs: dict[str, str | None] = Field(default_factory=dict)
    image: bool = False
    sent: bool = False
    taken: bool = False
    free: int = 0


class FoundMount(MachineAnswer):
    """A file or folder that a container mounts, and its name inside."""

    source: Annotated[Word, Field(pattern=r"^/")]
    name: Annotated[Word, Field(pattern=r"^[^/]+$")]


class FoundFile(MachineAnswer):
    """A file of a model: `place` is its path without links on the way, `blob` what it leads to."""

    path: Annotated[Word, Field(pattern=r"^/")]
    place: Word
    blob: Word
    size: Annotated[int, Field(ge=0, lt=1 << 62)] | None
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None


class FoundModel(MachineAnswer):
    """A model there: all its files, what is mounted for it and its place in that, its bytes if known."""

    files: Annotated[tuple[Word, ...], Field(max_length=_MANY)]
    mounts: Annotated[tuple[FoundMount, ...], Field(max_length=_MANY)]
    inside: Word
    size: Annotated[int, Field(ge=0, lt=1 << 62)] | None
    sources: Annotated[tuple[FoundFile, ...], Field(max_length=_MANY)] = ()


class Put(MachineAnswer):
    """The files that were written, and the folders that were made for them."""

    made: tuple[Word, ...]
    written: Annotated[tuple[Word, ...], Field(max_length=_MANY)]
    removed: Annotated[tuple[Word, ...], Field(max_length=_MANY)]


class Started(MachineAnswer):
    """A start; `lingering` was set for it."""

    lingering: bool = False


class Progress(MachineAnswer):
    """The last words of a fetch."""

    lines: tuple[Word, ...]


class CheckedThing(MachineAnswer):
    """One thing that was asked of the service."""

    name: Word
    ok: bool | None = None
    detail: Word = ""


class Answered(MachineAnswer):
    """The answers of a service to what its watchdog asks."""

    answered: bool
    checks: tuple[CheckedThing, ...]
    service: FoundService
    start_seconds: float = 600.0

    @property
    def why(self) -> str:
        """Return why it does not answer yet."""
        return "; ".join(one.detail for one in self.checks if one.ok is False)


class Undone(MachineAnswer):
    """The outcome of taking back: something was, what ran before runs again, nothing was there before."""

    undone: bool
    running: bool
    first: bool


class Leaving(MachineAnswer):
    """A service that is to be removed, and the files and folders that go with it."""

    service: FoundService
    paths: Annotated[tuple[Word, ...], Field(max_length=_MANY)]


class Removed(MachineAnswer):
    """The files and folders that were removed."""

    removed: Annotated[tuple[Word, ...], Field(max_length=_MANY)]


class Lines(MachineAnswer):
    """Lines of a service."""

    lines: Annotated[tuple[ServiceLine, ...], Field(max_length=20_000)]
    cursor: Word = ""
    note: Word = ""


class Power(MachineAnswer):
    """The power limits there."""

    gpus: Annotated[tuple[GpuPower, ...], Field(max_length=64)]
    permitted: bool
    why: Word = ""


class PowerSet(MachineAnswer):
    """A limit as it was read back."""

    gpu: GpuPower
