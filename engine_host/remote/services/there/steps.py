"""The steps on services there; the one that standard input names is done, as with an install."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine_host.remote.install.there.carrying import carry_out
from engine_host.remote.services.there.models import model
from engine_host.remote.services.there.power import power, set_power
from engine_host.remote.services.there.reading import logs
from engine_host.remote.services.there.running import (
    act,
    answers,
    fetch,
    inspect,
    leaving,
    progress,
    put,
    remove,
    settle,
    show,
    start,
    survey,
    undo,
)

STEPS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    one.__name__: one
    for one in (
        *(inspect, survey, show, put, fetch, progress, start, act, answers, settle, undo, leaving, remove),
        *(logs, model, power, set_power),
    )
}
_CHANGING = frozenset({"put", "start", "act", "settle", "undo", "remove", "set_power"})
# The others bring what they began to an end by themselves: half a start would leave no service.
_END_WITH_CALLER = STEPS.keys() - _CHANGING


def main() -> int:
    """Do the step that standard input names; 0 also when it failed, as the answer says it."""
    return carry_out(STEPS, _CHANGING, _END_WITH_CALLER)
