"""Energy comes from a GPU's counter where it has one, and is never counted for what was not measured."""

from engine_host.protocol.telemetry import EnergySource, Series
from engine_host.telemetry.energy import energy_of


def line(name: str, *values: float | None) -> Series:
    at = tuple(10.0 * place for place in range(len(values)))
    return Series(name=name, unit="", title="", source="", at=at, values=values)


def test_the_counter_wins_and_power_is_summed_up_where_there_is_none() -> None:
    series = (
        line("gpu.0.energy", 1000.0, None, 1500.0, 2000.0),
        line("gpu.0.power", 1.0, 1.0, 1.0, 1.0),
        line("gpu.1.power", 100.0, 200.0, None, 500.0, 100.0),
        line("engine.e.1.generated", 0.0, 100.0, 400.0),
        # Begun anew, as a driver does that is loaded again.
        line("recorded.gpu.0.energy", 900.0, 1000.0, 50.0),
        line("gpu.2.energy", 5.0),
        line("gpu.x.energy", 5.0, 6.0),
    )
    page = energy_of(series, 10.0, 0.0, 30.0)
    told = [(gpu.name, gpu.joules, gpu.source, gpu.seconds, gpu.recorded) for gpu in page.gpus]
    assert told == [
        ("GPU 0", 1000.0, EnergySource.COUNTER, 30.0, False),
        ("GPU 1", 4500.0, EnergySource.POWER, 20.0, False),
        ("GPU 0", 150.0, EnergySource.COUNTER, 20.0, True),
    ]
    assert (page.joules, page.generated_tokens, page.per_thousand) == (5500.0, 400, 13_750.0)


def test_nothing_measured_is_none_and_not_0() -> None:
    page = energy_of((line("engine.e.generated", 5.0, 5.0),), 1.0, 0.0, 1.0)
    assert (page.gpus, page.joules, page.generated_tokens, page.per_thousand) == ((), None, 0, None)
    assert energy_of((), 1.0, 0.0, 1.0).generated_tokens is None
