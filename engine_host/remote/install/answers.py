"""The answers of another machine, read with care: it may be anybody's."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Word = Annotated[str, Field(max_length=4096)]
_MANY = 200


class MachineAnswer(BaseModel):
    """An answer of a step; what is not known in it is left out."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, defer_build=True)


class FoundPython(MachineAnswer):
    """A Python there, and what it brings along."""

    path: Word
    version: tuple[int, int, int]
    ensurepip: bool
    pip: bool
    venv: bool

    @property
    def text(self) -> str:
        """Its version as people write it."""
        return ".".join(map(str, self.version))


class FoundIndex(MachineAnswer):
    """The package index as it was tried there; None where nothing could try it."""

    reachable: bool | None
    said: Word = ""


class FoundHost(MachineAnswer):
    """The process that holds the data of this user."""

    pid: int
    argv: Annotated[tuple[Word, ...], Field(max_length=_MANY)]
    ours: bool


class FoundEngine(MachineAnswer):
    """An engine that runs there."""

    name: Word
    keep: bool


class InstallRecord(MachineAnswer):
    """The note of an install there: the folders that it made, how the host is started."""

    made: Annotated[tuple[Word, ...], Field(max_length=_MANY)] = ()
    service: Word | None = None
    set_lingering: bool = False


class FoundStaying(MachineAnswer):
    """A service that goes on without the host, and its manager."""

    name: Word
    manager: Word


class FoundModel(MachineAnswer):
    """A model in the folder of the host, and its bytes."""

    path: Word
    size: Annotated[int, Field(ge=0, lt=1 << 62)]


class Unwritable(MachineAnswer):
    """A folder that takes no files, why, and the variable that leads elsewhere; some can be done without."""

    path: Word
    why: Literal["read-only", "not-theirs", "no-folder"]
    variable: Word
    needed: bool = True


class Probed(MachineAnswer):
    """A machine before an install.

    `releases` are whole, `damaged` says what is wrong with each of the others; `silent` is a host of ours
    that runs and does not answer.
    """

    user: Word
    machine: Word
    libc: tuple[Word, Word]
    pythons: Annotated[tuple[FoundPython, ...], Field(max_length=_MANY)]
    root: Word
    unit: Word
    environment: dict[Word, Word]
    free: Annotated[int, Field(ge=0, lt=1 << 62)]
    noexec: bool = False
    unwritable: Annotated[tuple[Unwritable, ...], Field(max_length=_MANY)] = ()
    gpus: Annotated[tuple[dict[Word, Word], ...], Field(max_length=_MANY)]
    index: FoundIndex
    systemd: bool
    lingers: bool | None
    record: InstallRecord | None
    current: Word | None
    previous: Word | None
    releases: Annotated[tuple[Word, ...], Field(max_length=_MANY)]
    damaged: dict[Word, Word] = {}
    installed: bool = False
    silent: bool = False
    running: FoundHost | None
    engines: Annotated[tuple[FoundEngine, ...], Field(max_length=_MANY)]
    own_data: Annotated[tuple[Word, ...], Field(max_length=_MANY)]
    staying: Annotated[tuple[Word, ...], Field(max_length=_MANY)] = ()
    services: Annotated[tuple[FoundStaying, ...], Field(max_length=_MANY)] = ()
    models: Annotated[tuple[FoundModel, ...], Field(max_length=_MANY)] = ()
    lacks_openmp: bool = False

    @property
    def ours_runs(self) -> bool:
        """True if the host that was installed from here runs."""
        return self.running is not None and self.running.ours

    def serves(self, release: str) -> bool:
        """Return True if this release is whole there, and its host runs and answers."""
        return self.current == release and release in self.releases and self.ours_runs and not self.silent


class Begun(MachineAnswer):
    """The folder there that files are sent to."""

    incoming: Word


class FoundVersion(MachineAnswer):
    """The program that answered there."""

    program: Word
    protocol: Word


class Switched(MachineAnswer):
    """A release that runs now, and the one before."""

    before: Word | None
    version: FoundVersion
    service: Word
    why_plain: Word = ""


class DemoSaid(MachineAnswer):
    """An answer of the bundled model."""

    text: Word


class DemoAnswered(MachineAnswer):
    """The answer of the bundled model there."""

    answer: DemoSaid


class Removed(MachineAnswer):
    """The folders that were removed there, and those that were there before."""

    removed: Annotated[tuple[Word, ...], Field(max_length=_MANY)]
    kept: Annotated[tuple[Word, ...], Field(max_length=_MANY)]
