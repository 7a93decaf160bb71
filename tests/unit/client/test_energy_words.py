"""Energy is written in joules and watt-hours, and says what it is made of."""

from engine_host.client.energy_words import energy_sentence, energy_text
from engine_host.protocol.host import RECORDED
from engine_host.protocol.telemetry import EnergyPage, EnergySource, GpuEnergy


def test_it_is_written_in_joules_and_watt_hours() -> None:
    assert energy_text(3600.0) == "3.6 kJ (1.00 Wh)"
    assert energy_text(5.0) == "5 J (<0.01 Wh)"
    assert energy_text(7.2e6) == "7.2 MJ (2.00 kWh)"


def test_power_that_was_summed_up_and_what_was_recorded_are_said() -> None:
    here = GpuEnergy(name="GPU 0", joules=3600.0, source=EnergySource.POWER, seconds=9.0)
    played = GpuEnergy(name="GPU 0", joules=50.0, source=EnergySource.COUNTER, seconds=9.0, recorded=True)
    page = EnergyPage(
        seq=0,
        since=0.0,
        until=9.0,
        gpus=(here, played),
        joules=3600.0,
        generated_tokens=1000,
        per_thousand=3600.0,
    )
    assert energy_sentence(page) == (
        "3.6 kJ (1.00 Wh) by power summed up  ·  3.6 kJ (1.00 Wh) for 1,000 tokens"
        f"  ·  50 J (0.01 Wh), {RECORDED}"
    )
    assert energy_sentence(page.model_copy(update={"gpus": (), "per_thousand": None})) == ""
