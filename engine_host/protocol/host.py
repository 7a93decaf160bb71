"""This machine as the host sees it."""

from enum import StrEnum

from pydantic import Field

from engine_host.protocol.base import Command, Seconds, Wire
from engine_host.protocol.errors import Problem
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import Finding


class GpuHolder(Wire):
    """A process that holds GPU memory; bytes, None where the driver lists it without saying how much."""

    pid: int
    name: str = ""
    memory: int | None = None


class ThrottleReason(StrEnum):
    """A reason for which a GPU's clocks are below their highest; the names are NVML's."""

    IDLE = "idle"
    APPLICATION_CLOCKS = "application_clocks"
    POWER_CAP = "power_cap"
    HARDWARE_SLOWDOWN = "hardware_slowdown"
    SYNC_BOOST = "sync_boost"
    THERMAL = "thermal"
    HARDWARE_THERMAL = "hardware_thermal"
    POWER_BRAKE = "power_brake"
    DISPLAY_CLOCKS = "display_clocks"


THROTTLE_WORDS = {
    ThrottleReason.IDLE: "nothing to do",
    ThrottleReason.APPLICATION_CLOCKS: "clocks set by a person or program",
    ThrottleReason.POWER_CAP: "power limit",
    ThrottleReason.HARDWARE_SLOWDOWN: "slowdown by the hardware",
    ThrottleReason.SYNC_BOOST: "clocks kept equal to another GPU's",
    ThrottleReason.THERMAL: "heat",
    ThrottleReason.HARDWARE_THERMAL: "heat, by the hardware",
    ThrottleReason.POWER_BRAKE: "power brake of the machine",
    ThrottleReason.DISPLAY_CLOCKS: "clocks of the display",
}
"""The reasons as people say them."""
SLOWED_BY = frozenset(
    {
        ThrottleReason.POWER_CAP,
        ThrottleReason.HARDWARE_SLOWDOWN,
        ThrottleReason.THERMAL,
        ThrottleReason.HARDWARE_THERMAL,
        ThrottleReason.POWER_BRAKE,
    }
)
"""The reasons that make a GPU slower than it could be while it works."""


class PcieLink(Wire):
    """The connection of a GPU; a link that is idle may be narrower and slower than it can be."""

    generation: int
    width: int
    most_generation: int | None = None
    most_width: int | None = None


class Gpu(Wire):
    """One GPU, read from NVML; bytes, watts, MHz, joules, degrees Celsius; None where it does not tell."""

    index: int
    uuid: str
    name: str
    memory_total: int
    memory_used: int = Field(description="as `nvidia-smi` has it: without what the driver keeps")
    memory_reserved: int | None = Field(None, description="kept by the driver itself, neither used nor free")
    utilization: float | None = None
    temperature: int | None = None
    power: float | None = None
    compute_capability: str | None = None
    memory_utilization: float | None = Field(
        None, description="share of time in which the memory controller was busy"
    )
    memory_temperature: int | None = None
    slowdown_temperature: int | None = Field(None, description="from where the driver lowers the clocks")
    power_limit: float | None = None
    clock: int | None = Field(None, description="of the streaming multiprocessors")
    most_clock: int | None = None
    memory_clock: int | None = None
    throttled_by: tuple[ThrottleReason, ...] | None = None
    pcie: PcieLink | None = None
    ecc_errors: int | None = Field(None, description="uncorrected, since the driver was loaded")
    energy: float | None = Field(None, description="since the driver was loaded")
    holders: tuple[GpuHolder, ...] = ()

    @property
    def memory_free(self) -> int:
        """Bytes that nobody holds, the driver included."""
        return max(self.memory_total - self.memory_used - (self.memory_reserved or 0), 0)


RECORDED = "recorded, not this machine"
"""The words that stand wherever figures of a recorded trace are shown."""


class Playback(Wire):
    """A recorded trace that is played: GPUs of another time or machine, never those of `HostInfo.gpus`.

    Their series are `recorded.gpu.N.…`. `problem` says why the file is not played.
    """

    file: str
    recorded_at: Seconds | None = None
    driver: str | None = None
    second: float = Field(0.0, description="of the trace, where it is now")
    gpus: tuple[Gpu, ...] = ()
    problem: Problem | None = None


class GpuAbsence(StrEnum):
    """The reason for which no GPU is listed."""

    NO_DEVICE = "no_device"
    NO_DRIVER = "no_driver"
    NOT_LOADED = "not_loaded"
    NO_NODE = "no_device_node"
    VERSIONS_DIFFER = "versions_differ"
    IN_CONTAINER = "in_container"
    NO_PERMISSION = "no_permission"
    OTHER_DRIVER = "other_driver"
    OTHER_MAKER = "other_maker"
    APPLE = "apple"
    LISTS_NONE = "lists_none"
    GPU_LOST = "gpu_lost"
    DRIVER_ERROR = "driver_error"
    NO_READER = "no_reader"


ABSENCE_WORDS = {
    GpuAbsence.NO_DEVICE: tr("no GPU"),
    GpuAbsence.NO_DRIVER: tr("no NVIDIA driver"),
    GpuAbsence.NOT_LOADED: tr("NVIDIA driver not loaded"),
    GpuAbsence.NO_NODE: tr("no device file of the GPU"),
    GpuAbsence.VERSIONS_DIFFER: tr("driver versions differ"),
    GpuAbsence.IN_CONTAINER: tr("container without GPU"),
    GpuAbsence.NO_PERMISSION: tr("GPU not permitted"),
    GpuAbsence.OTHER_DRIVER: tr("GPU has another driver"),
    GpuAbsence.OTHER_MAKER: tr("GPU not NVIDIA's"),
    GpuAbsence.APPLE: tr("Apple's GPU not read"),
    GpuAbsence.LISTS_NONE: tr("driver lists no GPU"),
    GpuAbsence.GPU_LOST: tr("GPU off its bus"),
    GpuAbsence.DRIVER_ERROR: tr("the GPU driver does not respond"),
    GpuAbsence.NO_READER: tr("nvidia-ml-py not installed"),
}
"""The reasons in a few words."""


class Reach(StrEnum):
    """The reach of the endpoint."""

    THIS_MACHINE = "this_machine"
    NETWORK = "network"


class Endpoint(Wire):
    """The address for editors and agents; `url` is None while it is not being served.

    `url` is the address to give to others; `local_url` the one for programs of this machine.
    """

    url: str | None
    local_url: str | None = None
    host: str
    port: int
    wanted_port: int
    reach: Reach
    key_required: bool


class HostInfo(Wire):
    """The machine, the program and its folders; memory in bytes.

    `owner` says with whom the host ends; empty when it stays, and `ends_with_window` is False. `replaced`
    says that the program was updated since, and this host is of the version before.
    """

    seq: int
    run_id: str
    program: str
    pid: int
    started_at: Seconds
    hostname: str
    os: str
    python: str
    cpu_name: str
    cpu_cores: int
    cpu_threads: int
    ram_total: int
    ram_used: int
    gpus: tuple[Gpu, ...]
    gpu_absence: GpuAbsence | None
    gpu_absence_detail: str = ""
    no_gpu: Finding | None = Field(None, description="why no GPU is listed, and what to do")
    driver: str | None
    cuda: str | None
    run_folder: str
    data_folder: str
    log_folder: str
    endpoint: Endpoint
    ends_with_window: bool
    owner: str = ""
    playback: Playback | None = None
    replaced: bool = False


def updated() -> str:
    """Return what a person is told of a host whose program was updated while it runs."""
    return tr(
        "The program was updated or removed while this host runs. The host and its engines go on as they "
        "are. For the new version end it when they may stop, and start it again: sndr quit"
    )


class HostStay(Command):
    """The wish that the host goes on, or does not, when the window or the command that started it ends."""

    stays: bool = True
