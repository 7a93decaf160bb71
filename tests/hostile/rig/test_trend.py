"""The line that judges a soak: it sees a leak through noise, and takes noise for none."""

import random

import pytest

from tests.hostile.rig.trend import Trend


def measured(leak: float, noise: float, seed: int) -> Trend:
    """A hundred measurements over an hour that grow by so much in all."""
    rng = random.Random(seed)
    at = [36.0 * number for number in range(101)]
    return Trend.of(at, [100.0 + leak * x / 3600 + rng.gauss(0.0, noise) for x in at])


@pytest.mark.parametrize("seed", range(20))
def test_a_leak_is_seen_and_noise_is_none(seed: int) -> None:
    assert measured(0.0, 5.0, seed).is_flat(3.0)
    assert not measured(30.0, 5.0, seed).is_flat(3.0)
    exact = measured(30.0, 0.0, seed)
    assert exact.growth == pytest.approx(30.0)
    assert exact.error == pytest.approx(0.0, abs=1e-6)


def test_two_measurements_make_no_line() -> None:
    with pytest.raises(ValueError, match="three"):
        Trend.of([0.0, 1.0], [1.0, 2.0])
