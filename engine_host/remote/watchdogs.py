"""Understands what the watchdogs of a machine wrote down; nothing of it is taken on trust."""

import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator

from pydantic import ValidationError

from engine_host.core.outside import json_text
from engine_host.core.visible import visible
from engine_host.protocol.language import tr
from engine_host.protocol.remote.hosts import WatchdogCheck, WatchdogEvent, WatchdogState
from engine_host.remote.run import SCRIPTS, RemoteOutcome, RemoteScript

READ = RemoteScript.read(SCRIPTS / "read_watchdogs.py")
_LONGEST, _MOST = 500, 20

Run = Callable[[RemoteScript], Awaitable[RemoteOutcome]]


async def read_watchdogs(run: Run, host: str) -> tuple[WatchdogState, ...]:
    """Return what each watchdog there saw last. Raises what `run` raises, and HostError(ssh_failed)."""
    outcome = await run(READ)
    printed = outcome.need_success(tr("Reading the watchdogs of {host}", host=host)).decode(
        "utf-8", "replace"
    )
    return tuple(understood(printed, time.time()))


def understood(printed: str, now: float) -> Iterator[WatchdogState]:
    """Each service that has a watchdog, its times by the clock of this machine, which says `now`.

    One that has not looked yet has no time.
    """
    for line in printed.splitlines():
        with contextlib.suppress(ValueError):
            told = json_text.parse_object(line)
            there = _time(told.get("now"))
            # A clock there that is behind would make a watchdog that looks seem to sleep, and one ahead the
            # other way round.
            yield _service(told, 0.0 if there is None else now - there)


def _service(told: dict[str, object], later: float) -> WatchdogState:
    service = _text(told.get("service"))
    lines = told.get("events")
    events = [one for line in lines if (one := _event(line, later))] if isinstance(lines, list) else []
    try:
        state = json_text.parse_object(str(told.get("state") or ""))
    except ValueError:
        return WatchdogState(service=service, events=tuple(events))
    checks, missing = state.get("checks"), state.get("missing")
    return WatchdogState(
        service=service,
        state=_text(state.get("state")) or "unknown",
        why=_text(state.get("why")),
        at=_time(state.get("at"), later),
        changed_at=_time(state.get("changed_at"), later),
        failures=_count(state.get("failures")),
        restarts=len(restarts) if isinstance(restarts := state.get("restarts"), list) else 0,
        checks=tuple(
            WatchdogCheck(
                name=_text(one.get("name")),
                ok=ok if isinstance(ok := one.get("ok"), bool) else None,
                detail=_text(one.get("detail")),
            )
            for one in (checks if isinstance(checks, list) else [])
            if isinstance(one, dict)
        ),
        missing=tuple(map(_text, missing[:_MOST])) if isinstance(missing, list) else (),
        awaited=state.get("awaited") is True,
        events=tuple(events),
    )


def _event(line: object, later: float) -> WatchdogEvent | None:
    try:
        told = json_text.parse_object(str(line))
        return WatchdogEvent(
            at=_time(told.get("at"), later) or 0.0, state=_text(told.get("state")), why=_text(told.get("why"))
        )
    except (ValueError, ValidationError):
        return None


def _text(value: object) -> str:
    return visible(value[:_LONGEST]) if isinstance(value, str) else ""


def _time(value: object, later: float = 0.0) -> float | None:
    return float(value) + later if isinstance(value, int | float) and 0 < value < 1e11 else None


def _count(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < 1 << 31 else 0
