"""This machine as the host sees it."""

from enum import StrEnum

from engine_host.protocol.base import Command, Seconds, Wire


class GpuHolder(Wire):
    """A process that holds GPU memory; bytes, None where the driver lists it without saying how much."""

    pid: int
    name: str = ""
    memory: int | None = None


class Gpu(Wire):
    """One GPU, read from NVML; bytes, watts and degrees Celsius; None where the driver does not tell."""

    index: int
    uuid: str
    name: str
    memory_total: int
    memory_used: int
    utilization: float | None = None
    temperature: int | None = None
    power: float | None = None
    compute_capability: str | None = None
    holders: tuple[GpuHolder, ...] = ()


class GpuAbsence(StrEnum):
    """The reason for which no GPU is listed."""

    NO_DRIVER = "no_driver"
    NO_DEVICE = "no_device"
    DRIVER_ERROR = "driver_error"


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

    `owner` says with whom the host ends; empty when it stays, and `ends_with_window` is False.
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
    driver: str | None
    cuda: str | None
    run_folder: str
    data_folder: str
    log_folder: str
    endpoint: Endpoint
    ends_with_window: bool
    owner: str = ""


class HostStay(Command):
    """The wish that the host goes on, or does not, when the window or the command that started it ends."""

    stays: bool = True
