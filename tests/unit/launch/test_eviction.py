"""Which engines end for another: the oldest first, by the memory that is missing, and none too many."""

import pytest

from engine_host.launch.eviction import Evictable, evictions

A, B, C = (
    Evictable("a", {"memory": 2}, 1.0),
    Evictable("b", {"memory": 5}, 2.0),
    Evictable("c", {"memory": 3, "GPU": 8}, 3.0),
)


@pytest.mark.parametrize(
    ("short", "ended"),
    [
        ({}, ()),
        ({"memory": 1}, ("a",)),
        ({"memory": 2}, ("a",)),
        ({"memory": 6}, ("a", "b")),
        ({"memory": 10}, ("a", "b", "c")),
        ({"memory": 11}, None),
        ({"GPU": 8}, ("c",)),
        ({"GPU": 9}, None),
        ({"another GPU": 1}, None),
        ({"memory": 2, "GPU": 1}, ("c",)),
    ],
)
def test_the_oldest_end_until_it_fits(short: dict[str, int], ended: tuple[str, ...] | None) -> None:
    assert evictions(short, [C, A, B]) == ended


def test_a_small_one_stays_where_a_large_one_is_enough() -> None:
    assert evictions({"memory": 4}, [A, B]) == ("b",)
    assert evictions({"memory": 2}, [B, A]) == ("a",), "and the oldest goes where either is"


def test_nothing_ends_where_there_is_nothing() -> None:
    assert evictions({"memory": 1}, []) is None
