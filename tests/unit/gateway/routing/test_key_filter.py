"""A provider's key is taken out of its answer wherever the pieces part it, and nothing else is."""

from collections.abc import Callable

import pytest

from engine_host.gateway.routing.key_filter import key_filter
from tests.hostile.effort import linear

KEY = "gsk_gsk_hunter22"
TEXT = b"".join((b"gsk_ a ", KEY.encode(), b" gsk_", KEY.encode(), b"gs"))


def passed(key: str, pieces: list[bytes]) -> bytes:
    """Return what passes a filter."""
    made = key_filter(key)
    assert made is not None
    return b"".join([*map(made.feed, pieces), made.end()])


@pytest.mark.parametrize("size", [1, 2, 3, 7, 16, 17, 100])
def test_it_is_found_however_the_pieces_part_it(size: int) -> None:
    pieces = [TEXT[at : at + size] for at in range(0, len(TEXT), size)]
    assert passed(KEY, pieces) == b"gsk_ a *** gsk_***gs"


def test_only_what_may_be_its_beginning_waits() -> None:
    made = key_filter(KEY)
    assert made is not None
    assert made.feed(b"data: a\n\n") == b"data: a\n\n"
    assert made.feed(b"data: gsk_") == b"data: "
    assert made.feed(b"other\n\n") == b"gsk_other\n\n"
    assert made.end() == b""


def test_no_key_and_a_placeholder_cost_nothing() -> None:
    assert key_filter(None) is None
    assert key_filter("none") is None


@pytest.mark.parametrize("key", ["a" * 64, "ab" * 32])
def test_a_piece_takes_no_longer_than_its_length(key: str) -> None:
    def act(size: int) -> Callable[[], object]:
        pieces = [b"a" * 63 + b"-"] * (size // 64)
        return lambda: passed(key, pieces)

    linear(act, 64 << 10)
