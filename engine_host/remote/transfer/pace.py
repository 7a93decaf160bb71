"""The progress of a transfer and its rate, as a job tells them."""

import time
from collections import deque
from collections.abc import Callable

from engine_host.core.sizes import duration, size_text

_SPAN = 10.0
"""Seconds over which the rate is measured."""


class Pace:
    """The bytes a second of the last seconds; unknown until some have gone."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: deque[tuple[float, int]] = deque()

    def add(self, done: int) -> None:
        """Note the bytes that have been carried so far; fewer than before begin anew."""
        now = self._clock()
        if self._seen and done < self._seen[-1][1]:
            self._seen.clear()
        self._seen.append((now, done))
        while now - self._seen[0][0] > _SPAN and len(self._seen) > 2:
            self._seen.popleft()

    @property
    def rate(self) -> float | None:
        """Bytes a second; None where it is not measured yet."""
        if len(self._seen) < 2:
            return None
        (began, first), (ended, last) = self._seen[0], self._seen[-1]
        return (last - first) / (ended - began) if ended - began >= 0.5 and last > first else None


class Told:
    """Tells a job what is read and carried; `total` bytes of `before` and more are to be there in the end."""

    def __init__(self, tell: Callable[[str, float | None], None] = lambda _detail, _share: None) -> None:
        """`tell` gets a detail and the share of the step that is done."""
        self._tell = tell
        self._pace = Pace()
        self.total, self.before = 0, 0
        self.carried = 0
        """Bytes that went over the connection, of every try."""
        self._reached: dict[str, int] = {}

    def say(self, detail: str) -> None:
        """Tell of something that has no share."""
        self._tell(detail, None)

    def breaks(self, name: str) -> None:
        """Tell that the connection to a machine broke; the rate is measured anew after it."""
        self._pace = Pace()
        self.say(f"the connection to {name} broke, and is waited for")

    def reading(self, name: str, size: int) -> Callable[[int], None]:
        """Return what tells how much of a file here was hashed."""
        return lambda done: self._tell(f"{name}: hashed {size_text(done)} of {size_text(size)}", None)

    def carrying(self, name: str) -> Callable[[int, int], None]:
        """Return what tells how much of a file is there, first with what was before this try."""

        def told(done: int, _size: int) -> None:
            # A try goes on from what had arrived, which may be less than went off, or a little more.
            self.carried += max(0, done - self._reached.get(name, done))
            self._reached[name] = done
            now = self.before + done
            self._pace.add(now)
            rate = self._pace.rate
            speed = f", {size_text(rate)}/s" if rate else ""
            rest = f", {duration((self.total - now) / rate)} left" if rate and now < self.total else ""
            share = min(1.0, now / self.total) if self.total else 1.0
            self._tell(f"{name}: {size_text(now)} of {size_text(self.total)}{speed}{rest}", share)

        return told
