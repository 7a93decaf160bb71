"""A line through measurements, with its error: does something grow, and how sure is that?"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, linear_regression


@dataclass(frozen=True)
class Trend:
    """How much something grew from the first measurement to the last, by the line that fits them best.

    `error` is twice the standard error of that growth: in 19 of 20 cases the truth lies within it.
    """

    first: float
    last: float
    growth: float
    error: float

    @classmethod
    def of(cls, at: Sequence[float], values: Sequence[float]) -> "Trend":
        """Fit a line; needs three measurements at different times. Raises ValueError for fewer."""
        if len(values) < 3:
            raise ValueError("a line with its error needs three measurements")
        slope, intercept = linear_regression(at, values)
        middle, span = fmean(at), max(at) - min(at)
        squares = sum((value - slope * x - intercept) ** 2 for x, value in zip(at, values, strict=True))
        spread = sum((x - middle) ** 2 for x in at)
        error = math.sqrt(squares / (len(values) - 2) / spread)
        return cls(values[0], values[-1], slope * span, 2 * error * span)

    def is_flat(self, bound: float) -> bool:
        """Tell that what is sure of the growth stays below a bound."""
        return self.growth - self.error <= bound
