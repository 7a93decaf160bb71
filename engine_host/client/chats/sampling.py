"""The table of what an answer can be asked for besides its text; what is left out is the engine's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Sampling:
    """One value: its name in OpenAI's requests, its caption, its bounds and its meaning.

    Bounds that are whole numbers ask for a whole number.
    """

    name: str
    caption: str
    low: float
    high: float
    help: str
    empty: str = "default"

    @property
    def option(self) -> str:
        """The option of `sndr chat` that sets it."""
        return "--" + self.name.replace("_", "-")

    @property
    def whole(self) -> bool:
        """True where only whole numbers are meant."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def taken(self, value: object) -> float | None:
        """Return a value as it may be asked for, or None for one that may not."""
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not self.low <= value <= self.high
        ):
            return None
        if not self.whole:
            return value
        return int(value) if value == int(value) else None


SAMPLING = (
    Sampling("temperature", "Temperature", 0.0, 5.0, "Higher is more varied; 0 takes the likeliest token."),
    Sampling("top_p", "Top-p", 0.0, 1.0, "Only the likeliest tokens that together have this probability."),
    Sampling("top_k", "Top-k", 0, 100_000, "Only so many of the likeliest tokens."),
    Sampling("min_p", "Min-p", 0.0, 1.0, "No token below this share of the likeliest one's probability."),
    Sampling(
        "presence_penalty", "Presence penalty", -2.0, 2.0, "Above 0, words that came already are rarer."
    ),
    Sampling("frequency_penalty", "Frequency penalty", -2.0, 2.0, "The same, for each time that they came."),
    Sampling("max_tokens", "Max tokens", 1, 1_000_000, "End the answer after so many tokens.", "no limit"),
    Sampling("seed", "Seed", 0, 2_147_483_647, "The same seed and settings repeat an answer.", "random"),
)


def checked(values: Mapping[str, object]) -> dict[str, float]:
    """Return those values of the table that are within their bounds, and nothing else."""
    found = {one.name: one.taken(values.get(one.name)) for one in SAMPLING}
    return {name: value for name, value in found.items() if value is not None}


def spelled(value: float) -> str:
    """Return a value as it is typed, with every digit."""
    return str(int(value)) if value == int(value) else repr(value)


def words_of(values: Mapping[str, float]) -> list[str]:
    """Return the words of `sndr chat` that ask for the same."""
    asked = [one for one in SAMPLING if one.name in values]
    return [word for one in asked for word in (one.option, spelled(values[one.name]))]
