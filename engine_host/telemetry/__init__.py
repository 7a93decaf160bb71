"""Live measurements of the machine and the engines, with a short history."""

from engine_host.telemetry.gpus import GpuReading, Gpus
from engine_host.telemetry.history import History
from engine_host.telemetry.machine import MachineFacts, MachineMonitor, MachineReading
from engine_host.telemetry.sampler import Sampler

__all__ = [
    "GpuReading",
    "Gpus",
    "History",
    "MachineFacts",
    "MachineMonitor",
    "MachineReading",
    "Sampler",
]
