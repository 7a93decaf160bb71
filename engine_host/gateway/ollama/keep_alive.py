"""Ollama's `keep_alive`: seconds as a number, or a duration as Go writes it; a negative one is for ever."""

import re
import sys

from engine_host.gateway.error_answers import EndpointError, invalid

_PART = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ns|us|µs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_LONGEST = 31_536_000.0
_MOST_SAID = sys.float_info.max
FOR_EVER = -1.0


def seconds(value: object) -> float | None:
    """Return the seconds that a model is to stay; -1 for ever, None where nothing is said.

    Raises EndpointError 400 for what is no duration.
    """
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        # Compared as it is: a whole number of JSON may be larger than any float, and NaN equals nothing.
        if not abs(value) <= _MOST_SAID:
            raise _no_duration()
        return _bounded(float(value))
    if isinstance(value, str):
        text = value.strip()
        sign = -1.0 if text.startswith("-") else 1.0
        digits = text.lstrip("+-")
        if digits.isascii() and digits.isdigit() and len(digits) < 12:
            return _bounded(sign * float(digits))
        parts = _PART.findall(digits)
        if parts and "".join(number + unit for number, unit in parts) == digits:
            return _bounded(sign * sum(float(number) * _SECONDS[unit] for number, unit in parts))
    raise _no_duration()


def _no_duration() -> EndpointError:
    return invalid("keep_alive must be seconds, or a duration like 5m or 1h30m.", param="keep_alive")


def _bounded(length: float) -> float:
    return FOR_EVER if length < 0 else min(length, _LONGEST)
