"""Drift over a soak: told where the second half is worse beyond noise, and failed where by too much."""

from typing import Any

import pytest

from engine_host.bench.lab.soak import MemoryWatch, drifts_of
from engine_host.protocol.bench.lab import DriftKind, MemoryReading, Sample

_NOISE = (1.0, 1.04, 0.97, 1.02, 0.99, 1.03, 0.98, 1.01)


def asked(sessions: int, slower: float, turns: int = 3) -> list[Sample]:
    """Sessions of turns, longer ones slower; the second half of the sessions takes `slower` times as long."""
    plain: dict[str, Any] = {"warm": False, "salt": "s", "started": 0.0, "total": 1.0, "tokens": 11}
    made = []
    for session in range(sessions):
        factor = _NOISE[session % len(_NOISE)] * (slower if session >= sessions // 2 else 1.0)
        for turn in range(1, turns + 1):
            first = 0.1 * turn * factor
            made.append(
                Sample(
                    part=f"turn {turn}",
                    number=session,
                    round=session,
                    first=first,
                    last=first + factor,
                    **plain,
                )
            )
    return made


def held(sessions: int, grown: int) -> list[MemoryReading]:
    """The first session fills what every engine fills; then memory grows by so many MiB a session."""
    base = [1000 + (0 if session == 0 else 300 + grown * session) for session in range(sessions)]
    noise = [0, 3, 1, 4, 2]
    return [
        MemoryReading(at=float(session), session=session, resident=(mib + noise[session % 5]) << 20)
        for session, mib in enumerate(base)
    ]


@pytest.mark.parametrize(
    ("slower", "told", "failed"), [(1.0, False, False), (1.1, True, False), (1.5, True, True)]
)
def test_a_slower_second_half_is_told_and_fails_by_the_bound(slower: float, told: bool, failed: bool) -> None:
    found = {drift.kind: drift for drift in drifts_of(asked(16, slower), ())}
    assert set(found) == {DriftKind.TTFT, DriftKind.TPOT}
    for drift in found.values():
        assert (drift.told, drift.failed, drift.sessions) == (told, failed, 16)
        assert drift.low is not None
        assert drift.high is not None
        assert drift.low <= slower - 1 <= drift.high


def test_memory_counts_from_the_second_session_on() -> None:
    (still,) = drifts_of((), held(20, 0))
    assert (still.kind, still.told, still.failed) == (DriftKind.MEMORY, False, False)
    (leaks,) = drifts_of((), held(20, 40))
    assert (leaks.told, leaks.failed) == (True, True)
    (some,) = drifts_of((), held(20, 5))
    assert (some.told, some.failed) == (True, False)


def test_five_sessions_that_each_hold_more_than_the_one_before_are_enough() -> None:
    # The first one is left out.
    (leaks,) = drifts_of((), held(6, 100))
    assert (leaks.sessions, leaks.told, leaks.failed) == (5, True, True)
    (still,) = drifts_of((), held(6, 0))
    assert (still.told, still.failed) == (False, False)


def test_too_few_sessions_are_shown_and_tell_nothing_and_no_process_has_no_memory() -> None:
    assert drifts_of(asked(1, 9.0), held(2, 900)) == ()
    short = drifts_of(asked(4, 9.0), held(4, 900))
    assert [(drift.told, drift.failed, drift.low) for drift in short] == [(False, False, None)] * 3
    assert (short[2].kind, short[2].sessions) == (DriftKind.MEMORY, 3)
    watch = MemoryWatch(None)
    assert watch.read(0, 0.0) is None
    watch.close()
