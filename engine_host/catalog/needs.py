"""What a preset needs, against some hardware of the catalogue."""

from collections.abc import Iterator

from engine_host.protocol.base import Severity
from engine_host.protocol.catalog import HardwareEntry, PresetEntry
from engine_host.protocol.plans import Finding


def findings(preset: PresetEntry, gpu: HardwareEntry | None, count: int | None) -> Iterator[Finding]:
    """What the hardware lacks (errors), and what nobody has tried on it (notes)."""
    needs = preset.needs
    if gpu is None or count is None:
        return
    if count < needs.gpus:
        said = f"It needs {needs.gpus} GPUs; there {'is one' if count == 1 else f'are {count}'}."
        yield _lacking("gpus", said, needs=needs.gpus, has=count)
    if needs.vram_gib is not None and gpu.vram_mib.value / 1024 < needs.vram_gib * _NOMINAL:
        has = round(gpu.vram_mib.value / 1024, 1)
        said = f"It needs {needs.vram_gib:g} GiB of memory on each GPU; {gpu.title} has {has:g}."
        yield _lacking("vram", said, needs=needs.vram_gib, has=has)
    if needs.sm is not None and capability(gpu.sm) < capability(needs.sm):
        said = f"It needs compute capability {needs.sm}; {gpu.title} has {gpu.sm}."
        yield _lacking("sm", said, needs=needs.sm, has=gpu.sm)
    absent = [name for name in needs.formats if name not in gpu.formats]
    if absent:
        said = f"It needs arithmetic in {', '.join(absent)}, which {gpu.title} does not have."
        yield _lacking("formats", said, needs=list(needs.formats), has=list(gpu.formats))
    if needs.nvlink and gpu.nvlink is False:
        yield _lacking("nvlink", f"It needs NVLink, which {gpu.title} does not have.", needs=True, has=False)
    if needs.gpus and needs.known_good and gpu.id not in needs.known_good:
        yield Finding(
            id="preset.unproven",
            severity=Severity.INFO,
            message=f"Nobody has reported it on {gpu.title}.",
            evidence={"known_good": list(needs.known_good), "hardware": gpu.id},
        )


# Drivers report up to 2 % less than the size that a card is sold with.
_NOMINAL = 0.97


def capability(sm: str) -> tuple[int, int]:
    """A compute capability as numbers that compare."""
    major, _, minor = sm.partition(".")
    return int(major), int(minor)


def _lacking(what: str, message: str, **evidence: object) -> Finding:
    return Finding(id=f"preset.{what}", severity=Severity.ERROR, message=message, evidence=evidence)
