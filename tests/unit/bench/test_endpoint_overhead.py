"""A round of many streams has so many tokens that it lasts."""

import pytest

from engine_host.bench.endpoint_overhead import tokens_of


@pytest.mark.parametrize(
    ("streams", "tokens", "rate", "each"),
    [
        (1, 96, 50.0, 96),
        (8, 96, 100.0, 96),
        # A processor's engine: a round ends soon.
        (64, 96, 900.0, 16),
        (64, 8, 900.0, 8),
        # A GPU's: 16 tokens would end before all streams are at work.
        (64, 96, 4_800.0, 75),
        (64, 96, 9_000.0, 96),
    ],
)
def test_tokens_of_a_stream(streams: int, tokens: int, rate: float, each: int) -> None:
    assert tokens_of(streams, tokens, rate) == each
