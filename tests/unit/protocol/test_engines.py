"""The lines of a failed engine's log that are shown with its problem."""

from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.errors import Problem, Reason
from tests.views.samples import host as samples

LINES = tuple(f"line {number}" for number in range(100))


def failed(told: object, lines: tuple[str, ...] = LINES) -> Engine:
    """Return an engine that failed, whose problem was found in this line."""
    evidence = {} if told is None else {"line": told}
    problem = Problem(reason=Reason.OUT_OF_MEMORY, message="Full.", evidence=evidence)
    return samples.engine(EngineState.FAILED).model_copy(update={"problem": problem, "last_lines": lines})


def test_the_line_that_told_stands_between_its_neighbours() -> None:
    assert failed("line 50").decisive_lines == LINES[48:54]
    assert failed("line 0").decisive_lines == LINES[:6]


def test_without_one_the_last_lines_are_what_there_is() -> None:
    assert failed(None).decisive_lines == LINES[-6:]
    assert failed(None, ()).decisive_lines == ()
    assert samples.engine(EngineState.FAILED, problem=None, last_lines=LINES).decisive_lines == LINES[-6:]


def test_one_that_came_before_those_that_are_kept_is_still_shown() -> None:
    assert failed("an early word").decisive_lines == ("an early word", *LINES[-5:])
    assert failed("an early word", ()).decisive_lines == ("an early word",)


def test_the_line_that_told_is_marked() -> None:
    assert failed("line 50").marked_lines[1:4] == ("  line 49", "> line 50", "  line 51")
    assert failed("an early word").marked_lines[0] == "> an early word"
    assert failed(None).marked_lines == LINES[-6:], "nothing is marked where nothing told"
