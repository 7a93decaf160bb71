"""Find the catalogue's entry for the GPUs of a machine."""

from collections import Counter
from collections.abc import Iterable

from engine_host.catalog.index import Catalog
from engine_host.protocol.host import Gpu
from engine_host.protocol.presets import HardwareHere

# A driver keeps up to two percent of the memory for itself, and error correction takes its part.
_MEMORY_BAND = 0.07
_MOST = 8


def recognise(catalog: Catalog, gpus: Iterable[Gpu]) -> HardwareHere | None:
    """The kind of GPU with the most memory in all; None when there is no GPU."""
    kinds: Counter[tuple[str, int]] = Counter()
    for gpu in gpus:
        kinds[gpu.name, gpu.memory_total] += 1
    if not kinds:
        return None
    (name, memory), count = max(kinds.items(), key=lambda kind: (kind[0][1] * kind[1], kind[0]))
    return HardwareHere(hardware=entry_called(catalog, name, memory), name=name, count=min(count, _MOST))


def entry_called(catalog: Catalog, name: str, memory: int) -> str | None:
    """The entry with this name and, as cards of one name come in several sizes, about this memory."""
    near = [
        (abs(one.entry.vram_mib.value - memory / 2**20), hardware_id)
        for hardware_id, one in catalog.hardware.items()
        if name in one.entry.names
    ]
    if not near:
        return None
    distance, hardware_id = min(near)
    return (
        hardware_id if distance <= catalog.hardware[hardware_id].entry.vram_mib.value * _MEMORY_BAND else None
    )
