"""GPUs through a FAKE NVML module; a real driver is read where there is one."""

import ctypes
import importlib.util
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from engine_host.core.diagnosis.gpu_absence import PciCard, Surroundings
from engine_host.protocol.host import GpuAbsence, PcieLink, ThrottleReason
from engine_host.telemetry.gpus import GpuReading, Gpus

T = TypeVar("T")
LIMIT = 20.0


class NVMLError(Exception):
    """FAKE: any failure of the library."""

    value = 999


class NVMLError_LibraryNotFound(NVMLError):  # noqa: N801, N818
    """FAKE: no library."""

    value = 12


class NVMLError_DriverNotLoaded(NVMLError):  # noqa: N801, N818
    """FAKE: no driver."""

    value = 9


class FakeNvml:
    """A FAKE pynvml with some cards; calls named in `broken` raise."""

    NVMLError = NVMLError
    NVMLError_LibraryNotFound = NVMLError_LibraryNotFound
    NVMLError_DriverNotLoaded = NVMLError_DriverNotLoaded
    NVML_TEMPERATURE_GPU = 0
    NVML_FI_DEV_MEMORY_TEMP = 82

    def __init__(self, cards: int = 1) -> None:
        self.cards = cards
        self.broken: dict[str, Exception] = {}
        self.odd: dict[str, Any] = {}
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
        return self.odd[name] if name in self.odd else self.answers(*arguments)[name]

    def answers(self, *arguments: Any) -> dict[str, Any]:
        """Return what each call answers."""
        return {
            "nvmlDeviceGetCurrentClocksThrottleReasons": 0x8,
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
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=25, memory=50),
            "nvmlDeviceGetTemperature": 41,
            "nvmlDeviceGetPowerUsage": 30500,
            "nvmlDeviceGetTemperatureThreshold": 90,
            "nvmlDeviceGetMaxClockInfo": 2100,
            "nvmlDeviceGetClockInfo": 9501 if arguments[-1:] == (2,) else 1395,
            "nvmlDeviceGetCurrentClocksEventReasons": 0x4 | 0x20 | 0x8000,
            "nvmlDeviceGetEnforcedPowerLimit": 350000,
            "nvmlDeviceGetTotalEnergyConsumption": 1500,
            "nvmlDeviceGetFieldValues": [SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(uiVal=72))],
            "nvmlDeviceGetCurrPcieLinkGeneration": 1,
            "nvmlDeviceGetCurrPcieLinkWidth": 8,
            "nvmlDeviceGetMaxPcieLinkGeneration": 4,
            "nvmlDeviceGetMaxPcieLinkWidth": 16,
            "nvmlDeviceGetTotalEccErrors": 0,
            "nvmlDeviceGetComputeRunningProcesses": [
                SimpleNamespace(pid=7, usedGpuMemory=100),
                SimpleNamespace(pid=8, usedGpuMemory=None),
            ],
            "nvmlDeviceGetGraphicsRunningProcesses": [],
        }


def test_a_gpu_is_read_whole() -> None:
    gpus = Gpus(FakeNvml(cards=2))
    reading = gpus.read()
    assert (reading.driver, reading.cuda, reading.absence) == ("580.95", "13.1", None)
    first, second = reading.gpus
    assert (first.index, second.index) == (0, 1)
    assert (first.name, first.memory_total, first.memory_used) == ("RTX 3090", 24 << 30, 1 << 30)
    assert (first.utilization, first.temperature, first.power) == (0.25, 41, 30.5)
    assert first.compute_capability == "8.6"
    assert (first.memory_utilization, first.memory_temperature, first.slowdown_temperature) == (0.5, 72, 90)
    assert (first.clock, first.most_clock, first.memory_clock) == (1395, 2100, 9501)
    assert first.throttled_by == (ThrottleReason.POWER_CAP, ThrottleReason.THERMAL), (
        "a later bit is no reason"
    )
    assert (first.power_limit, first.energy, first.ecc_errors) == (350.0, 1.5, 0)
    assert first.pcie == PcieLink(generation=1, width=8, most_generation=4, most_width=16)


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
    now = [0.0]
    gpus = Gpus(nvml, clock=lambda: now[0])
    gpus.read()
    nvml.calls.clear()
    gpus.read()
    assert len(nvml.calls) == 7
    assert not [call for call in nvml.calls if "Pcie" in call or "Ecc" in call], (
        "the driver reads them slowly"
    )
    now[0] = 11.0
    gpus.read()
    assert "nvmlDeviceGetCurrPcieLinkWidth" in nvml.calls


def test_what_a_gpu_does_not_tell_is_none() -> None:
    nvml = FakeNvml()
    for name in ("nvmlDeviceGetUtilizationRates", "nvmlDeviceGetTemperature", "nvmlDeviceGetPowerUsage"):
        nvml.broken[name] = NVMLError("Not Supported")
    (gpu,) = Gpus(nvml).read().gpus
    assert (gpu.utilization, gpu.temperature, gpu.power) == (None, None, None)


def test_a_gpu_that_tells_its_memory_alone_is_one() -> None:
    nvml = FakeNvml()
    told = (
        "nvmlInit",
        "nvmlDeviceGetCount",
        "nvmlDeviceGetHandleByIndex",
        "nvmlDeviceGetMemoryInfo",
        "nvmlShutdown",
    )
    for name in set(nvml.answers()) - set(told):
        nvml.broken[name] = NVMLError("Not Supported")
    (gpu,) = Gpus(nvml).read().gpus
    told_of = gpu.model_dump(exclude_none=True)
    assert set(told_of) == {"index", "uuid", "name", "memory_total", "memory_used", "holders"}


@pytest.mark.parametrize("odd", [None, "many", [], SimpleNamespace(), float("nan"), 1 << 70])
def test_an_odd_answer_beside_the_memory_leaves_the_gpu_there(odd: Any) -> None:
    nvml = FakeNvml()
    for name in ("FieldValues", "ClockInfo", "CurrPcieLinkWidth", "TotalEccErrors", "EnforcedPowerLimit"):
        nvml.odd[f"nvmlDeviceGet{name}"] = odd
    (gpu,) = Gpus(nvml).read().gpus
    assert gpu.memory_used == 1 << 30
    assert gpu.power_limit is None or odd == 1 << 70


def test_older_drivers_tell_their_reasons_by_another_name() -> None:
    nvml = FakeNvml()
    nvml.broken["nvmlDeviceGetCurrentClocksEventReasons"] = NVMLError("Function Not Found")
    (gpu,) = Gpus(nvml).read().gpus
    assert gpu.throttled_by == (ThrottleReason.HARDWARE_SLOWDOWN,)


@pytest.mark.parametrize(
    ("call", "error", "absence"),
    [
        ("nvmlInit", NVMLError_LibraryNotFound("not found"), GpuAbsence.NO_DRIVER),
        ("nvmlInit", NVMLError_DriverNotLoaded("not loaded"), GpuAbsence.NOT_LOADED),
        ("nvmlInit", NVMLError("Unknown Error"), GpuAbsence.DRIVER_ERROR),
        ("nvmlDeviceGetCount", NVMLError("Unknown Error"), GpuAbsence.DRIVER_ERROR),
        ("nvmlDeviceGetMemoryInfo", NVMLError("GPU is lost"), GpuAbsence.DRIVER_ERROR),
    ],
)
def test_the_reason_names_the_call(call: str, error: Exception, absence: GpuAbsence) -> None:
    nvml = FakeNvml()
    nvml.broken[call] = error
    there = Surroundings(cards=(PciCard("0000:01:00.0", "10de", "2684"),))
    reading = Gpus(nvml, look=lambda: there).read()
    assert reading.gpus == ()
    assert reading.absence is absence
    assert reading.no_gpu is not None
    assert reading.detail == f"{call}: {error}"


def test_no_gpu_and_no_package() -> None:
    assert Gpus(FakeNvml(cards=0), look=Surroundings).read().absence is GpuAbsence.LISTS_NONE
    assert Gpus(None).read().absence is GpuAbsence.NO_READER
    assert Gpus(FakeNvml()).last == GpuReading(), "it was not read yet, which is no reason"


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


def test_what_the_driver_keeps_is_neither_used_nor_free() -> None:
    class Newer(FakeNvml):
        """Tells it apart where it is asked to, as drivers from 510 on; else it is part of what is used."""

        nvmlMemory_v2 = 2  # noqa: N815 - the driver's own name

        def answer(self, name: str, *arguments: Any) -> Any:
            if name != "nvmlDeviceGetMemoryInfo":
                return super().answer(name, *arguments)
            told = SimpleNamespace(total=24 << 30, used=3 << 30, free=21 << 30)
            return (
                SimpleNamespace(**{**vars(told), "used": 2 << 30, "reserved": 1 << 30})
                if arguments[1:]
                else told
            )

    newer, older = (Gpus(nvml).read().gpus[0] for nvml in (Newer(), FakeNvml()))
    assert (newer.memory_used, newer.memory_reserved, newer.memory_free) == (2 << 30, 1 << 30, 21 << 30)
    assert (older.memory_used, older.memory_reserved, older.memory_free) == (1 << 30, None, 23 << 30)


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


def test_without_the_drivers_library_its_reader_is_not_loaded_and_later_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    there = False

    def load(name: str) -> None:
        if not there:
            raise OSError(name)

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", load)
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: True)
    gpus = Gpus(clock=lambda: now, look=Surroundings)
    reading = gpus.read()
    assert reading.gpus == ()
    assert reading.detail == "nvmlInit: NVML Shared Library Not Found"
    there, now = True, 60.0
    assert len(gpus.read().gpus) == 1
    gpus.close()
