"""The GPUs as NVIDIA's driver tells them, or the reason why there are none; never raises."""

import ctypes
import importlib.util
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from engine_host.core.diagnosis.gpu_absence import NO_LIBRARY, Surroundings, explained, without_reader
from engine_host.protocol.host import Gpu, GpuAbsence, GpuHolder, PcieLink, ThrottleReason
from engine_host.protocol.launch.plans import Finding
from engine_host.telemetry.gpu_surroundings import look_around

_LIBRARY = "libnvidia-ml.so.1"
"""The name by which nvidia-ml-py loads it on Linux."""
_RETRY_AFTER = 30.0
"""Seconds between two tries to reach a driver that did not answer."""
_SLOW_AGE = 10.0
"""Seconds for which what the driver reads slowly, and what hardly changes, counts as now."""
_MOST, _LONGEST_NAME = 64, 200
# The bits of nvmlDeviceGetCurrentClocksEventReasons, as nvml.h has them.
_THROTTLE_BITS = {
    0x1: ThrottleReason.IDLE,
    0x2: ThrottleReason.APPLICATION_CLOCKS,
    0x4: ThrottleReason.POWER_CAP,
    0x8: ThrottleReason.HARDWARE_SLOWDOWN,
    0x10: ThrottleReason.SYNC_BOOST,
    0x20: ThrottleReason.THERMAL,
    0x40: ThrottleReason.HARDWARE_THERMAL,
    0x80: ThrottleReason.POWER_BRAKE,
    0x100: ThrottleReason.DISPLAY_CLOCKS,
}
_SM, _MEMORY = 1, 2
"""The clocks of the streaming multiprocessors and of the memory, as nvml.h numbers them."""
# An answer of another form than the library's documents say.
_ODD = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError)


@dataclass(frozen=True)
class GpuReading:
    """The GPUs now; with none, `absence` and `no_gpu` say why and `detail` names the call that failed.

    All three say nothing where nothing was read yet.
    """

    gpus: tuple[Gpu, ...] = ()
    absence: GpuAbsence | None = None
    detail: str = ""
    no_gpu: Finding | None = None
    driver: str | None = None
    cuda: str | None = None


@dataclass(frozen=True)
class _Card:
    """The properties of one GPU that do not change."""

    handle: Any
    index: int
    uuid: str
    name: str
    memory_total: int
    compute_capability: str | None
    slowdown_temperature: int | None
    most_clock: int | None


class _CallError(Exception):
    """An NVML call failed; carries its name and the library's own error."""

    def __init__(self, call: str, error: Exception) -> None:
        super().__init__(f"{call}: {error}")
        self.error = error


class Gpus:
    """Reads NVML; the library is loaded at the first read, and again after the driver went away.

    Calls may block for as long as the driver does, so they belong on a thread; on several, each waits for its
    turn. `nvml` is the pynvml module, or None when it is not installed. Source: NVML through nvidia-ml-py.
    """

    def __init__(
        self,
        nvml: Any = ...,
        clock: Callable[[], float] = time.monotonic,
        look: Callable[[], Surroundings] = look_around,
    ) -> None:
        self._nvml = _module() if nvml is ... else nvml
        self._clock = clock
        self._look = look
        # Whoever finds the driver half opened takes it for one without GPUs, and closes it under the other.
        self._lock = threading.Lock()
        self._opened = False
        self._cards: tuple[_Card, ...] | None = None
        self._driver: str | None = None
        self._cuda: str | None = None
        self._failed_at: float | None = None
        self._slow: dict[int, tuple[float, dict[str, Any]]] = {}
        self._last = GpuReading()

    @property
    def last(self) -> GpuReading:
        """The newest reading, without asking the driver."""
        return self._last

    def read(self) -> GpuReading:
        """Read all GPUs; memory in bytes, power in watts, temperature in degrees Celsius."""
        with self._lock:
            return self._read()

    def _read(self) -> GpuReading:
        now = self._clock()
        if self._failed_at is not None and now - self._failed_at < _RETRY_AFTER:
            return self._last
        try:
            cards = self._open()
            if not cards:
                self._close()
                self._failed_at = now
                detail = "nvmlDeviceGetCount: the driver lists no GPU"
                absence, no_gpu = explained(0, detail, self._look())
                self._last = GpuReading((), absence, detail, no_gpu, self._driver, self._cuda)
                return self._last
            gpus = tuple(self._read_card(card) for card in cards)
            self._failed_at = None
            self._last = GpuReading(gpus, driver=self._driver, cuda=self._cuda)
        except _CallError as failure:
            self._failed(now, failure)
        except _ODD as error:
            self._failed(now, _CallError("the driver's answer", error))
        return self._last

    def _failed(self, now: float, failure: _CallError) -> None:
        self._close()
        self._failed_at = now
        absence, no_gpu = self._absence(failure)
        self._last = GpuReading((), absence, str(failure), no_gpu, self._driver)

    def read_with_holders(self, name_of: Callable[[int], str]) -> GpuReading:
        """Read all GPUs, each with the processes that hold memory of it, the most first."""
        with self._lock:
            reading, cards = self._read(), {card.index: card for card in self._cards or ()}
            processes = {gpu.index: self._processes(cards.get(gpu.index)) for gpu in reading.gpus}
        gpus = []
        for gpu in reading.gpus:
            holders = [
                GpuHolder(pid=pid, name=name_of(pid), memory=used)
                for pid, used in processes[gpu.index].items()
            ]
            holders.sort(key=lambda holder: holder.memory or 0, reverse=True)
            gpus.append(gpu.model_copy(update={"holders": tuple(holders)}))
        return replace(reading, gpus=tuple(gpus))

    def _processes(self, card: _Card | None) -> dict[int, int | None]:
        """Return the bytes of one GPU by pid, none where the driver's list makes no sense."""
        try:
            return {} if card is None else self._listed(card)
        except _ODD:
            return {}

    def _listed(self, card: _Card) -> dict[int, int | None]:
        """The same; the driver lists processes that compute and draw twice."""
        found: dict[int, int | None] = {}
        for call in ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses"):
            bytes_by_pid: dict[int, int | None] = {}
            for process in self._call_optional(call, card.handle) or ():
                bytes_by_pid[int(process.pid)] = process.usedGpuMemory
            for pid, used in bytes_by_pid.items():
                found[pid] = found.get(pid) if used is None else (found.get(pid) or 0) + int(used)
        return found

    def close(self) -> None:
        """Let go of the driver; a later read opens it again."""
        with self._lock:
            self._close()

    def _open(self) -> tuple[_Card, ...]:
        if self._cards is not None:
            return self._cards
        if isinstance(self._nvml, _LibraryFirst):
            # The driver may have come since the last look.
            self._nvml = _module()
        if self._nvml is None:
            raise _CallError("import pynvml", ModuleNotFoundError("nvidia-ml-py is not installed"))
        self._call("nvmlInit")
        self._opened = True
        self._driver = _text(self._call_optional("nvmlSystemGetDriverVersion"))
        version = self._call_optional("nvmlSystemGetCudaDriverVersion_v2")
        self._cuda = f"{version // 1000}.{version % 1000 // 10}" if isinstance(version, int) else None
        count = min(int(self._call("nvmlDeviceGetCount")), _MOST)
        self._cards = tuple(self._card(index) for index in range(count))
        return self._cards

    def _card(self, index: int) -> _Card:
        handle = self._call("nvmlDeviceGetHandleByIndex", index)
        capability = self._call_optional("nvmlDeviceGetCudaComputeCapability", handle)
        return _Card(
            handle,
            index,
            _text(self._call_optional("nvmlDeviceGetUUID", handle)) or f"gpu-{index}",
            _text(self._call_optional("nvmlDeviceGetName", handle)) or f"GPU {index}",
            int(self._call("nvmlDeviceGetMemoryInfo", handle).total),
            f"{capability[0]}.{capability[1]}" if capability else None,
            self._number("nvmlDeviceGetTemperatureThreshold", handle, 1),
            self._number("nvmlDeviceGetMaxClockInfo", handle, _SM),
        )

    def _read_card(self, card: _Card) -> Gpu:
        memory = self._memory(card.handle)
        rates = self._call_optional("nvmlDeviceGetUtilizationRates", card.handle)
        sensor = getattr(self._nvml, "NVML_TEMPERATURE_GPU", 0)
        temperature = self._call_optional("nvmlDeviceGetTemperature", card.handle, sensor)
        milliwatts = self._call_optional("nvmlDeviceGetPowerUsage", card.handle)
        return Gpu(
            index=card.index,
            uuid=card.uuid,
            name=card.name,
            memory_total=card.memory_total,
            memory_used=int(memory.used),
            memory_reserved=getattr(memory, "reserved", None),
            utilization=rates.gpu / 100 if rates is not None else None,
            temperature=int(temperature) if temperature is not None else None,
            power=milliwatts / 1000 if milliwatts is not None else None,
            compute_capability=card.compute_capability,
            memory_utilization=rates.memory / 100 if rates is not None else None,
            slowdown_temperature=card.slowdown_temperature,
            clock=self._number("nvmlDeviceGetClockInfo", card.handle, _SM),
            most_clock=card.most_clock,
            memory_clock=self._number("nvmlDeviceGetClockInfo", card.handle, _MEMORY),
            throttled_by=self._throttled_by(card.handle),
            **self._slowly(card),
        )

    def _memory(self, handle: Any) -> Any:
        """Return the driver's answer, with what it keeps for itself told apart where it can (from 510 on)."""
        apart = getattr(self._nvml, "nvmlMemory_v2", None)
        told = None if apart is None else self._call_optional("nvmlDeviceGetMemoryInfo", handle, apart)
        return told or self._call("nvmlDeviceGetMemoryInfo", handle)

    def _throttled_by(self, handle: Any) -> tuple[ThrottleReason, ...] | None:
        bits = self._number("nvmlDeviceGetCurrentClocksEventReasons", handle)
        if bits is None:
            # The name that drivers before 535 have.
            bits = self._number("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
        return None if bits is None else tuple(why for bit, why in _THROTTLE_BITS.items() if bits & bit)

    def _slowly(self, card: _Card) -> dict[str, Any]:
        """Return what takes the driver long to read, or hardly changes, at most some seconds old."""
        now = self._clock()
        at, values = self._slow.get(card.index, (now, {}))
        if values and now - at < _SLOW_AGE:
            return values
        limit = self._number("nvmlDeviceGetEnforcedPowerLimit", card.handle)
        energy = self._number("nvmlDeviceGetTotalEnergyConsumption", card.handle)
        values = {
            "memory_temperature": self._memory_temperature(card.handle),
            "power_limit": None if limit is None else limit / 1000,
            "energy": None if energy is None else energy / 1000,
            "pcie": self._pcie(card.handle),
            # Uncorrected ones, since the driver was loaded.
            "ecc_errors": self._number("nvmlDeviceGetTotalEccErrors", card.handle, 1, 0),
        }
        self._slow[card.index] = now, values
        return values

    def _pcie(self, handle: Any) -> PcieLink | None:
        generation = self._number("nvmlDeviceGetCurrPcieLinkGeneration", handle)
        width = self._number("nvmlDeviceGetCurrPcieLinkWidth", handle)
        if generation is None or width is None:
            return None
        return PcieLink(
            generation=generation,
            width=width,
            most_generation=self._number("nvmlDeviceGetMaxPcieLinkGeneration", handle),
            most_width=self._number("nvmlDeviceGetMaxPcieLinkWidth", handle),
        )

    def _memory_temperature(self, handle: Any) -> int | None:
        field = getattr(self._nvml, "NVML_FI_DEV_MEMORY_TEMP", None)
        fields = None if field is None else self._call_optional("nvmlDeviceGetFieldValues", handle, [field])
        try:
            # A GPU without that sensor says 0.
            return int(fields[0].value.uiVal) or None if fields and fields[0].nvmlReturn == 0 else None
        except _ODD:
            return None

    def _number(self, name: str, *arguments: Any) -> int | None:
        """One NVML call whose answer is a whole number; None where the GPU does not tell."""
        try:
            value = self._call_optional(name, *arguments)
            return None if value is None else int(value)
        except _ODD:
            return None

    def _call(self, name: str, *arguments: Any) -> Any:
        """One NVML call; raises _CallError."""
        try:
            return getattr(self._nvml, name)(*arguments)
        except (self._nvml.NVMLError, AttributeError, OSError, ValueError) as error:
            # A name that is no UTF-8 is a ValueError of the library's own.
            raise _CallError(name, error) from error

    def _call_optional(self, name: str, *arguments: Any) -> Any:
        """One NVML call for something a GPU may not tell; None then."""
        try:
            return self._call(name, *arguments)
        except _CallError:
            return None

    def _close(self) -> None:
        if self._opened:
            self._call_optional("nvmlShutdown")
        self._opened, self._cards = False, None
        self._slow.clear()

    def _absence(self, failure: _CallError) -> tuple[GpuAbsence, Finding]:
        if self._nvml is None:
            return without_reader()
        code = getattr(failure.error, "value", None)
        return explained(code if isinstance(code, int) else None, str(failure), self._look())


class _NoLibraryError(Exception):
    """The driver's library is not there; as the library's own module says it."""

    value = NO_LIBRARY

    def __str__(self) -> str:
        return "NVML Shared Library Not Found"


class _LibraryFirst:
    """Stands for pynvml where there is no library that it could ask: its tables take 3 MB of memory."""

    NVMLError = _NoLibraryError

    def nvmlInit(self) -> None:
        """Fail as the module does."""
        raise _NoLibraryError


def _module() -> Any:
    if importlib.util.find_spec("pynvml") is None:
        return None
    if sys.platform == "linux":
        try:
            ctypes.CDLL(_LIBRARY)
        except OSError:
            return _LibraryFirst()
    try:
        import pynvml
    except ImportError:
        return None
    return pynvml


def _text(value: Any) -> str | None:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return text[:_LONGEST_NAME] if isinstance(text, str) else None
