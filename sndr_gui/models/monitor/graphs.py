"""The graphs of Monitor beside memory, KV cache and rates: which series each has, and in which unit."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from engine_host.protocol.language import tr
from sndr_gui.kit import formats, measured_by


@dataclass(frozen=True)
class GraphRow:
    """One graph: series whose name matches, of the engine shown or of the machine.

    A measured value times `scale` is drawn; `top` is the end of the axis, and `word` writes a measured value.
    """

    title: str
    series: str
    word: Callable[[float], str]
    scale: float = 1.0
    top: float | None = None
    of_engine: bool = False
    about: str = ""
    """Who measured it, where engines differ."""

    def has(self, name: str) -> bool:
        """Return True for the name of a series, without the engine's id, that belongs here."""
        return re.fullmatch(self.series, name) is not None


def _in(unit: str, digits: int = 0) -> Callable[[float], str]:
    return lambda value: formats.measure(formats.number(value, f",.{digits}f"), unit)


def _a_second(value: float) -> str:
    return f"{formats.size(value)}/s"


ENGINE, LATENCY, GPUS, MACHINE = tr("Engine"), tr("Latency"), tr("GPUs"), tr("Machine")
SETS = (ENGINE, LATENCY, GPUS, MACHINE)
KV = GraphRow(tr("KV cache, %"), r"kv\.(share|cached)", formats.percent, 100.0, 100.0, of_engine=True)
RATES = GraphRow(tr("Tokens per second"), r"(decode|prefill)_rate", formats.rate, of_engine=True)
GRAPHS = {
    LATENCY: (
        GraphRow(
            tr("Time to first token, s"),
            r"ttft|queued",
            formats.duration,
            of_engine=True,
            about=measured_by.ENGINE_OR_ENDPOINT,
        ),
        GraphRow(tr("Between tokens, ms"), r"itl", formats.duration, 1000.0, of_engine=True),
        GraphRow(
            tr("Prefix cache hits and draft acceptance, %"),
            r"prefix_hits|acceptance\.\d+",
            formats.percent,
            100.0,
            100.0,
            of_engine=True,
        ),
        GraphRow(tr("Requests"), r"requests\.(running|waiting)|preemptions", _in(""), of_engine=True),
    ),
    GPUS: (
        GraphRow(tr("Busy, %"), r"(recorded\.)?gpu\.\d+\.utilization", formats.percent, 100.0, 100.0),
        GraphRow(tr("Power, W"), r"(recorded\.)?gpu\.\d+\.power", _in("W")),
        GraphRow(tr("Temperature, °C"), r"(recorded\.)?gpu\.\d+\.temperature", _in("°C")),
        GraphRow(tr("Memory temperature, °C"), r"(recorded\.)?gpu\.\d+\.memory\.temperature", _in("°C")),
        GraphRow(
            tr("Throttled by power or heat, %"),
            r"(recorded\.)?gpu\.\d+\.throttled",
            formats.percent,
            100.0,
            100.0,
        ),
        GraphRow(
            tr("Memory controller busy, %"),
            r"(recorded\.)?gpu\.\d+\.memory\.utilization",
            formats.percent,
            100.0,
            100.0,
        ),
        GraphRow(tr("Clock, MHz"), r"(recorded\.)?gpu\.\d+\.clock", _in("MHz")),
        GraphRow(tr("Memory clock, MHz"), r"(recorded\.)?gpu\.\d+\.memory\.clock", _in("MHz")),
        GraphRow(tr("PCIe lanes"), r"(recorded\.)?gpu\.\d+\.pcie\.width", _in("lanes")),
        GraphRow(tr("PCIe generation"), r"(recorded\.)?gpu\.\d+\.pcie\.generation", _in("", 0)),
    ),
    MACHINE: (
        GraphRow("CPU, %", r"cpu\.share", formats.percent, 100.0, 100.0),
        GraphRow(tr("RAM used, GiB"), r"ram\.used", formats.size, 1 / 2**30),
        GraphRow(tr("Disk, MiB/s"), r"disk\..*", _a_second, 1 / 2**20),
        GraphRow(tr("Network, MiB/s"), r"network\..*", _a_second, 1 / 2**20),
    ),
}
