"""The marks of an axis: no two closer than can be hit, and the gravest in front."""

from engine_host.protocol.telemetry import Mark, MarkKind
from sndr_gui.models.monitor.marks import APART, GROUPS, bunched, clock, told

START = 1_795_000_000.0


def mark(at: float, kind: MarkKind = MarkKind.STARTED) -> Mark:
    return Mark(id=f"{at}{kind}", at=START + at, kind=kind, text=f"{kind} at {at:g}")


def test_every_kind_has_a_look() -> None:
    kinds = [kind for group in GROUPS for kind in group.kinds]
    assert sorted(kinds) == sorted(MarkKind)
    assert len({group.shape for group in GROUPS}) == len(GROUPS), "a form as well as a colour"


def test_an_axis_has_no_more_marks_than_fit() -> None:
    many = [mark(number * 0.1) for number in range(36_000)]
    found = bunched(many, 3600, 500)
    assert len(found) <= 500 / APART + 2
    assert sum(len(bunch.marks) for bunch in found) == len(many)


def test_a_failure_is_in_front_of_what_happened_beside_it() -> None:
    (bunch,) = bunched(
        [mark(0.1), mark(0.2, MarkKind.READY), mark(0.3, MarkKind.DIED), mark(0.4, MarkKind.PATCH_FAILED)],
        3600,
        300,
    )
    assert bunch.marks[0].kind is MarkKind.DIED
    assert bunch.group.title == "Failures"
    assert bunch.at == START + 0.3
    said = bunch.sentences().splitlines()
    assert [line.split("  ")[1] for line in said] == [
        "started at 0.1", "ready at 0.2", "died at 0.3", "patch_failed at 0.4",
    ]  # fmt: skip


def test_marks_keep_together_while_time_goes_on() -> None:
    marks = [mark(at) for at in (1.0, 40.0, 41.0, 90.0)]
    together = [tuple(one.id for one in bunch.marks) for bunch in bunched(marks, 300, 400)]
    later = [tuple(one.id for one in bunch.marks) for bunch in bunched(marks[1:], 300, 400)]
    assert together[1:] == later


def test_a_long_list_is_cut() -> None:
    (bunch,) = bunched([mark(number * 0.001) for number in range(20)], 3600, 10)
    assert bunch.sentences().endswith("and 15 more")


def test_what_came_again_says_how_often_and_when_last() -> None:
    once = mark(1.0, MarkKind.PATCH_FAILED)
    assert told(once) == once.text
    again = once.model_copy(update={"times": 3, "last_at": START + 60, "processes": (1, 2)})
    assert told(again) == f"{once.text}  ·  3 times, last at {clock(START + 60)}, in 2 processes"
    (bunch,) = bunched([again], 3600, 300)
    assert bunch.sentences().endswith("in 2 processes")
