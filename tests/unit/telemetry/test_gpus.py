"""GPUs through a FAKE NVML module; a real driver is read where there is one."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from engine_host.protocol.host import GpuAbsence
from engine_host.telemetry.gpus import GpuReading, Gpus

T = TypeVar("T")
LIMIT = 20.0


class NVMLError(Exception):
    """FAKE: any failure of the library."""


class NVMLError_LibraryNotFound(NVMLError):  # noqa: N801, N818
    """FAKE: no library."""


class NVMLError_DriverNotLoaded(NVMLError):  # noqa: N801, N818
    """FAKE: no driver."""


class FakeNvml:
    """A FAKE pynvml with some cards; calls named in `broken` raise."""

    NVMLError = NVMLError
    NVMLError_LibraryNotFound = NVMLError_LibraryNotFound
    NVMLError_DriverNotLoaded = NVMLError_DriverNotLoaded
    NVML_TEMPERATURE_GPU = 0

    def __init__(self, cards: int = 1) -> None:
        self.cards = cards
        self.broken: dict[str, Exception] = {}
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvml"):
            raise AttributeError(name)

        def call(*arguments: Any) -> Any:
            self.calls.append(name)
            if name in self.broken:
                raise self.broken[name]
            return self.answer(name, *arguments)

        return call

    def answer(self, name: str, *arguments: Any) -> Any:
        """Return the answer of the call."""
        return {
            "nvmlInit": None,
            "nvmlShutdown": None,
            "nvmlSystemGetDriverVersion": b"580.95",
            "nvmlSystemGetCudaDriverVersion_v2": 13010,
            "nvmlDeviceGetCount": self.cards,
            "nvmlDeviceGetHandleByIndex": arguments[0] if arguments else None,
            "nvmlDeviceGetUUID": "GPU-x",
            "nvmlDeviceGetName": "RTX 3090",
            "nvmlDeviceGetCudaComputeCapability": (8, 6),
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=24 << 30, used=1 << 30),
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=25),
            "nvmlDeviceGetTemperature": 41,
            "nvmlDeviceGetPowerUsage": 30500,
            "nvmlDeviceGetComputeRunningProcesses": [
                SimpleNamespace(pid=7, usedGpuMemory=100),
                SimpleNamespace(pid=8, usedGpuMemory=None),
            ],
            "nvmlDeviceGetGraphicsRunningProcesses": [],
        }[name]


def test_a_gpu_is_read_whole() -> None:
    gpus = Gpus(FakeNvml(cards=2))
    reading = gpus.read()
    assert (reading.driver, reading.cuda, reading.absence) == ("580.95", "13.1", None)
    first, second = reading.gpus
    assert (first.index, second.index) == (0, 1)
    assert (first.name, first.memory_total, first.memory_used) == ("RTX 3090", 24 << 30, 1 << 30)
    assert (first.utilization, first.temperature, first.power) == (0.25, 41, 30.5)
    assert first.compute_capability == "8.6"


def test_each_gpu_says_who_holds_it_the_most_first() -> None:
    nvml = FakeNvml(cards=2)
    nvml.broken["nvmlDeviceGetGraphicsRunningProcesses"] = NVMLError("Not Supported")
    first, second = Gpus(nvml).read_with_holders(lambda pid: f"program {pid}").gpus
    assert [(holder.pid, holder.name, holder.memory) for holder in first.holders] == [
        (7, "program 7", 100),
        (8, "program 8", None),
    ]
    assert second.holders == first.holders


def test_repeated_reads_ask_only_for_what_changes() -> None:
    nvml = FakeNvml()
    gpus = Gpus(nvml)
    gpus.read()
    nvml.calls.clear()
    gpus.read()
    assert len(nvml.calls) == 4


def test_what_a_gpu_does_not_tell_is_none() -> None:
    nvml = FakeNvml()
    for name in ("nvmlDeviceGetUtilizationRates", "nvmlDeviceGetTemperature", "nvmlDeviceGetPowerUsage"):
        nvml.broken[name] = NVMLError("Not Supported")
    (gpu,) = Gpus(nvml).read().gpus
    assert (gpu.utilization, gpu.temperature, gpu.power) == (None, None, None)


@pytest.mark.parametrize(
    ("call", "error", "absence"),
    [
        ("nvmlInit", NVMLError_LibraryNotFound("not found"), GpuAbsence.NO_DRIVER),
        ("nvmlInit", NVMLError_DriverNotLoaded("not loaded"), GpuAbsence.NO_DRIVER),
        ("nvmlInit", NVMLError("Unknown Error"), GpuAbsence.DRIVER_ERROR),
        ("nvmlDeviceGetCount", NVMLError("Unknown Error"), GpuAbsence.DRIVER_ERROR),
        ("nvmlDeviceGetMemoryInfo", NVMLError("GPU is lost"), GpuAbsence.DRIVER_ERROR),
    ],
)
def test_the_reason_names_the_call(call: str, error: Exception, absence: GpuAbsence) -> None:
    nvml = FakeNvml()
    nvml.broken[call] = error
    reading = Gpus(nvml).read()
    assert reading.gpus == ()
    assert reading.absence is absence
    assert reading.detail == f"{call}: {error}"


def test_no_gpu_and_no_package() -> None:
    assert Gpus(FakeNvml(cards=0)).read().absence is GpuAbsence.NO_DEVICE
    assert Gpus(None).read().absence is GpuAbsence.NO_DRIVER


def test_a_driver_that_comes_back_is_found_again() -> None:
    now = [0.0]
    nvml = FakeNvml()
    gpus = Gpus(nvml, clock=lambda: now[0])
    assert gpus.read().gpus
    nvml.broken["nvmlDeviceGetMemoryInfo"] = NVMLError("GPU is lost")
    assert gpus.read().absence is GpuAbsence.DRIVER_ERROR
    nvml.broken.clear()
    assert gpus.read().absence is GpuAbsence.DRIVER_ERROR
    now[0] = 31.0
    assert gpus.read().gpus
    assert gpus.last.absence is None
    gpus.close()
    assert nvml.calls[-1] == "nvmlShutdown"


class SlowNvml(FakeNvml):
    """A FAKE driver that holds the call `held` until it is let go."""

    def __init__(self, held: str) -> None:
        super().__init__()
        self.held = held
        self.reached = threading.Event()
        self.let_go = threading.Event()

    def answer(self, name: str, *arguments: Any) -> Any:
        if name == self.held:
            self.reached.set()
            self.let_go.wait(LIMIT)
        return super().answer(name, *arguments)


class TellingLock:
    """A lock that says when somebody comes to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.arrived = threading.Event()

    def __enter__(self) -> None:
        self.arrived.set()
        self._lock.acquire()

    def __exit__(self, *_error: object) -> None:
        self._lock.release()


def during_a_read(
    nvml: SlowNvml, act: Callable[[Gpus], T], check: Callable[[], object] = lambda: None
) -> tuple[GpuReading, T]:
    """Return a read that the driver holds, and the result of an act on another thread meanwhile.

    The driver is let go once the other came to the lock, or was done without coming to it.
    """
    gpus = Gpus(nvml)
    lock = TellingLock()
    gpus._lock = lock  # type: ignore[assignment]
    with ThreadPoolExecutor(2) as threads:
        try:
            reading = threads.submit(gpus.read)
            assert nvml.reached.wait(LIMIT)
            lock.arrived.clear()
            other = threads.submit(act, gpus)
            other.add_done_callback(lambda _done: lock.arrived.set())
            assert lock.arrived.wait(LIMIT)
            check()
        finally:
            nvml.let_go.set()
        return reading.result(LIMIT), other.result(LIMIT)


@pytest.mark.parametrize("second", [Gpus.read, lambda gpus: gpus.read_with_holders(str)])
def test_who_reads_while_the_driver_is_opened_sees_its_gpus(second: Callable[[Gpus], GpuReading]) -> None:
    nvml = SlowNvml("nvmlDeviceGetHandleByIndex")
    for reading in during_a_read(nvml, second):
        assert len(reading.gpus) == 1
    assert nvml.calls.count("nvmlInit") == 1
    assert "nvmlShutdown" not in nvml.calls


def test_who_closes_the_driver_waits_for_who_reads() -> None:
    nvml = SlowNvml("nvmlDeviceGetPowerUsage")
    closed_early: list[bool] = []
    reading, _closed = during_a_read(
        nvml, Gpus.close, lambda: closed_early.append("nvmlShutdown" in nvml.calls)
    )
    assert len(reading.gpus) == 1
    assert closed_early == [False]
    assert nvml.calls[-1] == "nvmlShutdown"


def test_a_driver_that_fails_half_opened_is_closed() -> None:
    nvml = FakeNvml()
    nvml.broken["nvmlDeviceGetHandleByIndex"] = NVMLError("Unknown Error")
    assert Gpus(nvml).read().absence is GpuAbsence.DRIVER_ERROR
    assert nvml.calls[-1] == "nvmlShutdown"


def test_the_real_driver_or_a_reason() -> None:
    gpus = Gpus()
    reading = gpus.read()
    gpus.close()
    assert bool(reading.gpus) == (reading.absence is None)
    assert reading.gpus or reading.detail


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("nvmlDeviceGetCount", 2**64),
        ("nvmlDeviceGetCount", "many"),
        ("nvmlDeviceGetName", b"\xff\xfe" * 500),
        ("nvmlDeviceGetName", 5),
        ("nvmlDeviceGetCudaComputeCapability", 8),
        ("nvmlDeviceGetMemoryInfo", None),
        ("nvmlDeviceGetPowerUsage", float("inf")),
        ("nvmlDeviceGetTemperature", float("nan")),
        ("nvmlDeviceGetComputeRunningProcesses", [None]),
        ("nvmlDeviceGetComputeRunningProcesses", 5),
    ],
)
def test_an_answer_of_another_form_raises_nothing(call: str, value: Any) -> None:
    class Odd(FakeNvml):
        def answer(self, name: str, *arguments: Any) -> Any:
            return value if name == call else super().answer(name, *arguments)

    reading = Gpus(Odd()).read_with_holders(lambda _pid: "x")
    assert len(reading.gpus) <= 64
    for gpu in reading.gpus:
        assert len(gpu.name) <= 200
        assert gpu.model_dump_json()


def test_a_name_that_is_no_text_is_left_out() -> None:
    nvml = FakeNvml()
    nvml.broken["nvmlDeviceGetName"] = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x")
    assert Gpus(nvml).read().gpus[0].name == "GPU 0"
