"""Services: starts that systemd, Docker or Podman carries out, on this machine or another one.

`local` in the place of a host's name is this machine.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from engine_host.protocol.base import Command, Query, Seconds, Wire
from engine_host.protocol.language.spoken import Sentence, Spoken
from engine_host.protocol.launch.deploy import GpuUuid
from engine_host.protocol.launch.plans import Finding, LaunchRequest
from engine_host.protocol.remote.install import PlannedChange
from engine_host.protocol.text import Line

# Of units and containers; an instance of a unit has an @, an escaped path a backslash.
ServiceName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9:_.@\\-]{0,199}$")]


class ServiceManager(StrEnum):
    """The program that keeps a service; `systemd` is that of the user."""

    SYSTEMD = "systemd"
    DOCKER = "docker"
    PODMAN = "podman"


class ServiceState(StrEnum):
    """The state of a service as its manager tells it; `restarting` comes back by itself."""

    RUNNING = "running"
    STARTING = "starting"
    RESTARTING = "restarting"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"
    UNKNOWN = "unknown"


class ServiceAction(StrEnum):
    """The actions on a service that is there; `enable` and `disable` are about the start of the machine."""

    START = "start"
    STOP = "stop"
    RESTART = "restart"
    ENABLE = "enable"
    DISABLE = "disable"


class ManagerState(Spoken):
    """A manager of services there: usable or not, and why not."""

    manager: ServiceManager
    usable: bool
    why: Sentence = ""


class Service(Spoken):
    """A service as it is now.

    One that is `ours` was written down by this program and can be changed; others are shown alone. `detail`
    is the manager's own word for the state; `enabled` says that it starts with the machine. `health` is the
    manager's own check (containers), None without one. `model`, `engine`, `preset`, `address` and `changed`
    are of ours: `changed` are files that somebody changed there since, `watchdog` its watchdog's last word.
    """

    manager: ServiceManager
    name: str
    ours: bool = False
    title: str = ""
    state: ServiceState = ServiceState.UNKNOWN
    detail: Sentence = ""
    enabled: bool | None = None
    health: str | None = None
    pid: int | None = None
    restarts: int | None = None
    image: str | None = None
    preset: str | None = None
    model: str | None = None
    engine: str | None = None
    address: str | None = None
    changed: tuple[str, ...] = ()
    watchdog: str | None = None


class ServicePage(Wire):
    """The services of a machine, ours first; `read_at` is when it was asked."""

    host: str
    read_at: Seconds
    managers: tuple[ManagerState, ...]
    services: tuple[Service, ...]


class InstallService(Command):
    """Have a start carried out by a manager of services.

    Without `hardware` it is for the GPUs that the machine has. `model_path` is a file or folder over there
    in the place of the preset's model, `program` the engine's program over there (systemd). `rehydrate`:
    the watchdog may have the model's files brought again when they are gone, None where the install itself
    fetches them from the same place. `name` is the service's, the preset's unless said. `enable` lets it
    start with the machine, `start` now. `replace` writes over what somebody changed there, and over another
    start of the same name. `force` is for findings that say that it would not start, `consent` the digest
    of what a preset from somebody else asks for.
    """

    launch: LaunchRequest
    manager: ServiceManager = ServiceManager.SYSTEMD
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,47}$")] | None = None
    port: int = Field(8000, ge=1, le=65535)
    hardware: str | None = None
    count: int | None = Field(None, ge=1, le=8)
    gpus: tuple[GpuUuid, ...] = Field((), max_length=16)
    model_path: Annotated[Line, Field(max_length=4096, pattern=r"^/")] | None = None
    program: Annotated[Line, Field(max_length=4096, pattern=r"^/")] | None = None
    rehydrate: bool | None = None
    enable: bool = True
    start: bool = True
    replace: bool = False
    force: bool = False
    consent: str | None = None


class ServicePlan(Wire):
    """Everything that an install or a removal will do there; an `error` in the findings stops it.

    `unchanged`: it is there just so, and runs as asked. `address` is where it will answer on that machine.
    """

    host: str
    manager: ServiceManager
    name: str
    title: str = ""
    address: str | None = None
    model: str | None = None
    unchanged: bool = False
    changes: tuple[PlannedChange, ...] = ()
    findings: tuple[Finding, ...] = ()


class ServiceDone(Wire):
    """The result of a job on a service: `service` as it is now, None for one that was removed.

    `route` is the command that lets the endpoint here answer with its model, where it runs and answers.
    """

    host: str
    manager: ServiceManager
    name: str
    service: Service | None = None
    unchanged: bool = False
    removed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    route: str = ""
    findings: tuple[Finding, ...] = ()


class ActOnService(Command):
    """An action on a service; with `wait` a start has ended when it answers."""

    action: ServiceAction
    wait: bool = True


class RemoveService(Command):
    """The removal of a service; `replace` removes also files that somebody changed there."""

    replace: bool = False


class ServiceLogQuery(Query):
    """The newest `lines`, or those after `after`; where there are none, it waits for some so many seconds."""

    lines: int = Field(200, ge=1, le=5000)
    after: str = Field("", max_length=1000)
    wait: float = Field(0.0, ge=0.0, le=20.0)


class ServiceLine(Wire):
    """A line of a service; control characters in it are as they came."""

    at: Seconds | None = None
    text: str


class ServiceLogs(Spoken):
    """Lines of a service, oldest first; `cursor` is the `after` of the next question.

    `note` says why there are none, where the manager says that.
    """

    host: str
    manager: ServiceManager
    name: str
    lines: tuple[ServiceLine, ...]
    cursor: str = ""
    note: Sentence = ""


class GpuPower(Wire):
    """The power limit of a GPU with its bounds, and what it draws; watts, None where it does not tell."""

    index: int
    uuid: str
    name: str
    limit: float | None = None
    default: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    draw: float | None = None


class PowerPage(Spoken):
    """The power limits of a machine; `permitted` says if this user may set them, `why` why not.

    `why` also says why no GPU is listed.
    """

    host: str
    read_at: Seconds
    gpus: tuple[GpuPower, ...] = ()
    permitted: bool = False
    why: Sentence = ""


class SetPower(Command):
    """A power limit for a GPU, by its number or UUID; without watts its default. Not kept over a reboot."""

    gpu: Annotated[str, Field(pattern=r"^([0-9]{1,3}|(GPU|MIG)-[0-9A-Za-z/-]{8,80})$")]
    watts: Annotated[int, Field(ge=1, le=10_000)] | None = None


class PowerPlan(Wire):
    """The change that setting a limit makes; an `error` in the findings stops it."""

    host: str
    gpu: GpuPower | None = None
    watts: int | None = None
    changes: tuple[PlannedChange, ...] = ()
    findings: tuple[Finding, ...] = ()


class PowerDone(Wire):
    """The limit as it was read back."""

    host: str
    gpu: GpuPower
    unchanged: bool = False
