"""The visited pages: back and forward, a new way, hosts that are removed."""

from hypothesis import given
from hypothesis import strategies as st

from sndr_gui.models.window.history import History, Place


def visited(*pages: str) -> History:
    """A history of places; a page with a slash is on that host."""
    made = History()
    for page in pages:
        host, _slash, name = page.rpartition("/")
        made.visit(Place(host, name))
    return made


def test_back_and_forward_walk_over_what_was_visited() -> None:
    walked = visited("home", "logs", "chat")
    assert walked.forward() is None
    assert [walked.back(), walked.back(), walked.back()] == [Place("", "logs"), Place("", "home"), None]
    assert walked.after == Place("", "logs")
    assert [walked.forward(), walked.forward(), walked.forward()] == [
        Place("", "logs"),
        Place("", "chat"),
        None,
    ]


def test_a_new_visit_ends_the_way_forward_and_the_same_place_does_not() -> None:
    walked = visited("home", "logs", "chat")
    walked.back()
    walked.visit(Place("", "logs"))
    assert walked.after == Place("", "chat")
    walked.visit(Place("", "fit"))
    assert walked.before == Place("", "logs")
    assert walked.forward() is None


def test_a_host_that_was_removed_is_left_out() -> None:
    walked = visited("home", "gpu/logs", "home", "gpu/chat", "fit")
    walked.back()
    walked.forget("gpu")
    assert (walked.before, walked.after) == (None, Place("", "fit"))
    only = visited("gpu/logs", "gpu/chat")
    only.forget("gpu")
    assert (only.before, only.after, only.back(), only.forward()) == (None, None, None, None)
    only.visit(Place("", "home"))
    assert only.before is None


def test_a_long_day_is_not_kept_whole() -> None:
    walked = visited(*(f"page {number}" for number in range(1000)))
    steps = 0
    while walked.back() is not None:
        steps += 1
    assert steps == 99


@given(st.lists(st.sampled_from(["visit a", "visit gpu/b", "visit c", "back", "forward", "forget gpu"])))
def test_any_walk_stands_where_it_says(steps: list[str]) -> None:
    walked = History()
    for step in steps:
        verb, _space, page = step.partition(" ")
        before, after = walked.before, walked.after
        if verb == "visit":
            host, _slash, name = page.rpartition("/")
            walked.visit(Place(host, name))
        elif verb == "back":
            assert walked.back() == before
        elif verb == "forward":
            assert walked.forward() == after
        else:
            walked.forget(page)
            assert {place.host for place in (walked.before, walked.after) if place} <= {""}
