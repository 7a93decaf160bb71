"""A ring with two bounds, and texts that are cut with a mark."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine_host.core.bounds.cut_text import cut_text, cut_texts
from engine_host.core.bounds.newest import Newest


@given(
    count=st.integers(1, 6),
    size=st.integers(1, 40),
    items=st.lists(st.integers(0, 50), max_size=40),
)
def test_it_holds_the_newest_that_fit(count: int, size: int, items: list[int]) -> None:
    ring: Newest[int] = Newest(count, size)
    for item in items:
        ring.add(item, item)
        held = list(ring)
        assert len(ring) == len(held) <= count
        assert ring.size == sum(held) <= size
    held = list(ring)
    assert held == items[len(items) - len(held) :]
    if len(held) < len(items):
        one_more = items[len(items) - len(held) - 1 :]
        assert len(one_more) > count or sum(one_more) > size
    assert [ring[place] for place in range(len(held))] == held


def test_a_text_is_cut_with_what_is_left_out() -> None:
    assert cut_text("short", 5) == "short"
    assert cut_text("longer", 5) == "longe… [1 more characters]"
    assert cut_text("x" * 12_345, 345) == "x" * 345 + "… [12,000 more characters]"


def test_every_text_of_a_value_is_cut_and_nothing_else_changes() -> None:
    value: dict[str, Any] = {"a": ["xyz", 1, None, {"bbbb": "yyyy"}], "c": True, "d": 1.5}
    assert cut_texts(value, 3) == {
        "a": ["xyz", 1, None, {"bbb… [1 more characters]": "yyy… [1 more characters]"}],
        "c": True,
        "d": 1.5,
    }
    assert cut_texts(value, 100) == value
