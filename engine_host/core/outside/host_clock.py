"""The offset of another machine's clock, measured from the dates of its answers."""

from email.utils import parsedate_to_datetime

AGREES = 3.0
"""Seconds by which clocks may differ and be taken as one: a date is of a whole second, and up to one old."""
_LAG, _UNSURE = 1.0, 1.5
_SLOWEST = 2.0
"""Seconds for an answer; of a slower one nobody knows when its date was written."""
_MOST = 10 * 366 * 86_400.0


class HostClock:
    """Seconds that the clock of a host is ahead of this machine's: 0.0 where they agree, or nobody asked."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def hear(self, date: str | None, began: float, ended: float) -> None:
        """Take the date of an answer; by the clock here it was asked for at `began` and had at `ended`."""
        if not 0.0 <= ended - began <= _SLOWEST:
            return
        try:
            told = parsedate_to_datetime(date or "").timestamp()
        except (ValueError, TypeError, OverflowError):
            return
        ahead = told + _LAG - (began + ended) / 2
        if abs(ahead) > _MOST or abs(ahead - self.ahead) <= _UNSURE + (ended - began) / 2:
            # The same within what a date can tell: times that were shown stay where they are.
            return
        self.ahead = ahead if abs(ahead) > AGREES else 0.0
