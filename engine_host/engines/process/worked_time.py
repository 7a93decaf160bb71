"""The time that an engine worked, and how fast it wrote in that time."""

from engine_host.protocol.engines import Readings

# Below this many seconds a difference of counters says more about the clock than about the engine.
_SHORTEST = 0.05


class WorkedTime:
    """The time in which the endpoint's requests were with an engine, and its decode rate over it.

    An idle engine is read seldom, so the time between two readings holds idle time that no rate may count.
    Times are of a clock that nobody sets, in seconds.
    """

    def __init__(self) -> None:
        self._since: float | None = None
        self._worked = 0.0
        self._base: Readings | None = None
        self._base_at = 0.0
        self._missed = False
        self._others = False

    @property
    def working(self) -> bool:
        """True while a request of the endpoint is with the engine."""
        return self._since is not None

    def set(self, working: bool, at: float) -> None:
        """Told when the first request begins and the last one ends."""
        if working and self._since is None:
            self._since = at
        elif not working and self._since is not None:
            self._worked += at - self._since
            self._since = None

    def rate(self, now: Readings, at: float, *, others: bool = False) -> float | None:
        """Tokens a second of all streams since the last reading, over the time that was worked.

        `at` is when `now` was read, and `others` says that the engine was busy while no request of the
        endpoint was there. None is "not measured": the first reading, a time too short, or work of others
        that did not fill the whole time. A counter that goes back once has missed a request that just
        ended, so the next reading is compared with the one before.
        """
        others, self._others = others or self._others, others
        before = self._base
        elapsed = at - self._base_at
        gained = _gained(before, now)
        if before is not None and gained is not None and gained < 0 and not self._missed:
            self._missed = True
            return None
        worked = self._taken(at)
        self._base, self._base_at, self._missed = now, at, False
        if before is None or gained is None or gained < 0 or elapsed < _SHORTEST:
            return None
        if gained == 0:
            return 0.0
        if before.slots_busy and now.slots_busy:
            worked = elapsed
        elif others:
            return None
        return gained / worked if worked >= _SHORTEST else None

    def _taken(self, at: float) -> float:
        """The seconds worked since they were last taken."""
        worked, self._worked = self._worked, 0.0
        if self._since is not None:
            worked += at - self._since
            self._since = at
        return max(worked, 0.0)


def _gained(before: Readings | None, now: Readings) -> int | None:
    if before is None or before.generated_tokens_total is None or now.generated_tokens_total is None:
        return None
    return now.generated_tokens_total - before.generated_tokens_total
