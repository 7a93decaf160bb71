"""Energy in words, for the command line and the window."""

from engine_host.protocol.host import RECORDED
from engine_host.protocol.language import tr
from engine_host.protocol.telemetry import EnergyPage, EnergySource


def energy_text(joules: float) -> str:
    """An energy in both units that people know: `3.6 kJ (1.00 Wh)`."""
    value, unit = joules, "J"
    for larger in ("kJ", "MJ", "GJ"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    hours = joules / 3600
    shown = f"{hours / 1000:.2f} kWh" if hours >= 1000 else f"{hours:.2f} Wh" if hours >= 0.01 else "<0.01 Wh"
    return f"{value:.3g} {unit} ({shown})"


def energy_sentence(page: EnergyPage) -> str:
    """Return the energy of a time in a line; empty where no GPU tells any.

    What is summed up from power and what is recorded is said so.
    """
    here = [gpu for gpu in page.gpus if not gpu.recorded]
    played = [gpu for gpu in page.gpus if gpu.recorded]
    said = []
    if here:
        summed = any(gpu.source is EnergySource.POWER for gpu in here)
        said.append(
            energy_text(sum(gpu.joules for gpu in here)) + (f" {tr('by power summed up')}" if summed else "")
        )
    if page.per_thousand is not None:
        said.append(tr("{energy_text} for 1,000 tokens", energy_text=energy_text(page.per_thousand)))
    if played:
        said.append(f"{energy_text(sum(gpu.joules for gpu in played))}, {RECORDED}")
    return "  ·  ".join(said)
