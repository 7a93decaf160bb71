"""What watchdogs wrote down, as it comes from a machine that may send anything."""

import json

import pytest

from engine_host.remote.watchdogs import understood


def line(state: object, *events: object, service: str = "sndr-a") -> str:
    """One service as the program there prints it."""
    told = state if isinstance(state, str) else json.dumps(state)
    return json.dumps({"service": service, "state": told, "events": [json.dumps(one) for one in events]})


def test_what_a_watchdog_saw() -> None:
    state = {
        "state": "failing",
        "why": "it does not answer",
        "at": 1000.5,
        "changed_at": 900,
        "failures": 2,
        "restarts": [1, 2],
        "checks": [{"name": "token", "ok": False, "detail": "HTTP 500"}, {"name": "gpus", "ok": None}],
    }
    (one,) = understood(line(state, {"at": 900, "state": "healthy", "why": ""}), 0.0)
    assert (one.service, one.state, one.failures, one.restarts) == ("sndr-a", "failing", 2, 2)
    assert [(check.name, check.ok) for check in one.checks] == [("token", False), ("gpus", None)]
    assert [event.state for event in one.events] == ["healthy"]


def test_one_that_has_not_looked_yet() -> None:
    (one,) = understood(line(""), 0.0)
    assert (one.state, one.at) == ("unknown", None)


@pytest.mark.parametrize(
    "state",
    [
        {"state": 7, "why": [], "at": "x", "failures": 10**30, "restarts": "no", "checks": {}},
        {"state": "\x1b[31m", "why": "a" * 10**5, "at": 1e300, "checks": [7, {"name": None, "ok": "yes"}]},
        "[]",
        "{",
        "null",
    ],
)
def test_hostile_states_are_harmless(state: object) -> None:
    (one,) = understood(line(state, "no event", {"at": -1}, {"at": "x", "state": 1}), 0.0)
    assert "\x1b" not in one.model_dump_json()
    assert len(one.why) <= 500
    assert all(check.ok is not True for check in one.checks)


def test_lines_that_are_none_are_left_out() -> None:
    printed = "motd\n{}x\n[1]\n" + line({}, service="sndr-b")
    assert [one.service for one in understood(printed, 0.0)] == ["sndr-b"]


@pytest.mark.parametrize("ahead", [-3600.0, 0.0, 3600.0])
def test_times_are_by_the_clock_of_this_machine(ahead: float) -> None:
    told = json.loads(
        line({"at": 91000 + ahead, "changed_at": 90500 + ahead}, {"at": 90400 + ahead, "state": "a"})
    )
    (one,) = understood(json.dumps({**told, "now": 91030 + ahead}), 91030.0)
    assert (one.at, one.changed_at, one.events[0].at) == (91000.0, 90500.0, 90400.0)
