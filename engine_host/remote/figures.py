"""The figures of a host's card: the tokens a second of its engines, and the last that happened there."""

import math
import re
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from engine_host.core.outside import json_text
from engine_host.gateway.metrics.remote import READ, RemoteEngineFigures
from engine_host.protocol.remote.hosts import RemoteHostState
from engine_host.protocol.text import first_break

_TOKENS = re.compile(
    r"^(?:vllm:generation_tokens_total|llamacpp:tokens_predicted_total|sglang:generation_tokens_total)"
    r"(?:\{[^}\n]*\})?[ \t]+([0-9][0-9.eE+]{0,30})",
    re.MULTILINE,
)
_SERVING = {"ready", "busy"}
_LARGEST = 1e15
_LONGEST = 200
_MOST_ENGINES = 64
_STALE = 60.0
"""Seconds after which two counts are too far apart for a rate of now."""


class Counter:
    """A counter that is read again and again; its rate is that between two readings."""

    def __init__(self) -> None:
        self._before: tuple[float, float] | None = None

    def add(self, at: float, total: float | None) -> float | None:
        """Return the rate a second; None at first, after a restart, and where nothing is counted."""
        before, self._before = self._before, None if total is None else (at, total)
        if before is None or total is None or total < before[1] or not 0 < at - before[0] < _STALE:
            return None
        return (total - before[1]) / (at - before[0])


def tokens_in(metrics: str) -> float | None:
    """Return the tokens that an engine has written, in its metrics; None where it does not count them."""
    found = []
    for text in _TOKENS.findall(metrics):
        try:
            found.append(float(text))
        except ValueError:
            return None
    return sum(found) if found and sum(found) < _LARGEST else None


def serving_engines(body: bytes) -> tuple[RemoteEngineFigures, ...]:
    """Return what the engines that serve have told, from the list of engines of an engine host."""
    try:
        engines = json_text.parse_object(body).get("engines")
    except ValueError:
        return ()
    found: dict[str, RemoteEngineFigures] = {}
    for one in engines if isinstance(engines, list) else ():
        if not isinstance(one, dict) or one.get("state") not in _SERVING:
            continue
        names, readings = [one.get("id"), one.get("name")], one.get("readings")
        if not all(map(_is_name, names)) or not isinstance(readings, dict) or len(found) >= _MOST_ENGINES:
            continue
        values = {name: float(readings[name]) for name in READ if _is_figure(readings.get(name))}
        found.setdefault(str(names[0]), RemoteEngineFigures(str(names[0]), str(names[1]), values))
    return tuple(found.values())


def rate_of_engines(engines: Collection[RemoteEngineFigures]) -> float | None:
    """Return the tokens a second of all engines of a host; None where none was measured."""
    rates = [one.values["decode_rate"] for one in engines if "decode_rate" in one.values]
    return sum(rates) if rates else None


def _is_figure(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LARGEST


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST and first_break(value) is None


@dataclass
class Figures:
    """The figures of one host; a rate that is not measured now is None, whatever it was."""

    rate: float | None = None
    rate_at: float | None = None
    last: str | None = None
    last_at: float | None = None
    clock: Callable[[], float] = field(default=time.time, repr=False)
    _state: RemoteHostState = RemoteHostState.DISCONNECTED

    def measured(self, rate: float | None) -> bool:
        """Take a rate; return True if it is another one."""
        new = round(rate, 1) if rate is not None and math.isfinite(rate) else None
        changed, self.rate = new != self.rate, new
        self.rate_at = self.clock() if new is not None else None
        return changed

    def answers(self, old: Collection[str], new: Collection[str], *, told: bool = False) -> None:
        """Note which models answer now that did not, or the other way round.

        `told`: the engine host there says so, and answers itself: what went was stopped, or has ended.
        """
        come, gone = sorted(set(new) - set(old)), sorted(set(old) - set(new))
        if come:
            self._note(f"{_named(come)} answers" if len(come) == 1 else f"{_named(come)} answer")
        elif gone and told:
            self._note(f"{_named(gone)} ended")
        elif gone:
            self._note(
                f"{_named(gone)} does not answer any more"
                if len(gone) == 1
                else f"{_named(gone)} do not answer any more"
            )

    def state(self, state: RemoteHostState) -> None:
        """Note that the connection came or went."""
        before, self._state = self._state, state
        if state is before:
            return
        if state is RemoteHostState.CONNECTED:
            self._note("connected")
        elif before is RemoteHostState.CONNECTED:
            self.rate = self.rate_at = None
            self._note("disconnected" if state is RemoteHostState.DISCONNECTED else "the connection was lost")

    def _note(self, what: str) -> None:
        self.last, self.last_at = what, self.clock()


def _named(models: list[str]) -> str:
    shown = ", ".join(models[:3]) + (f" and {len(models) - 3} more" if len(models) > 3 else "")
    return shown[:_LONGEST]
