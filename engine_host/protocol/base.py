"""The bases of all wire types, and the version of the protocol."""

import json
import re
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo

PROTOCOL_MAJOR = 1
PROTOCOL_MINOR = 0
CALLER = "x-sndr-caller"
"""The header by which the requests of one command are known as its own."""


# A whole number that a file names may need more than the 64 bits of those who read what is sent; the same
# digits may stand in a text. Behind a dot as many are usual: those of a time that was measured.
_HUGE = re.compile(r"(?<![0-9.])[0-9]{19}")
# Looked for first: what begins with a look behind is tried at each sign, six times as slow.
_LONG = re.compile(r"[0-9]{19}")
_MOST = (1 << 63) - 1


# Each is built when first used: a program uses a few of four hundred, and building all was a fifth of
# its start. pydantic 2.14 lets one thread at a time build.
# JSON has no other numbers than finite ones, and arithmetic with others ends in errors far from their source.
class Wire(BaseModel):
    """A value sent by the host; a field the reader does not know is ignored, so an older window works."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, defer_build=True)

    def model_dump_json(self, **options: Any) -> str:
        """Return the value as JSON that every reader of ours takes.

        What is no text in a name (a file's, a process's) is marked; a number of more than 64 bits is a text.
        """
        try:
            written = super().model_dump_json(**options)
            if not (_LONG.search(written) and _HUGE.search(written)):
                return written
            return json.dumps(_writable(self.model_dump(mode="json", **options)))
        except ValueError:  # pydantic's own error is one.
            return json.dumps(_writable(self.model_dump(mode="json", **options)))


class Command(BaseModel):
    """A value sent to the host; an unknown field is an error, so a misspelt one is never dropped."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    def body(self) -> str:
        """Return what is said as JSON: a host of an older version refuses a word that it does not know.

        A null inside a value (a setting that gets its default back) is said; a field that is None is not, nor
        is one that is empty or False by default.
        """
        return self.model_dump_json(exclude_none=True, exclude=_unsaid(self) or None)


class Query(BaseModel):
    """The parameters after the `?` of a path; an unknown name is ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, defer_build=True)


# From the year 1 to the year 9998: whoever shows a time needs a calendar for it, wherever the clocks are.
_EARLIEST, _LATEST = -62_000_000_000, 253_370_000_000


def _by_this_clock(at: float, info: ValidationInfo) -> float:
    """Return a time by the clock of who reads it: the context are the seconds that the sender's is ahead."""
    ahead = info.context
    return min(max(at - ahead, _EARLIEST), _LATEST) if isinstance(ahead, float) else at


def _all_by_this_clock(times: tuple[float, ...], info: ValidationInfo) -> tuple[float, ...]:
    ahead = info.context
    return tuple(at - ahead for at in times) if isinstance(ahead, float) else times


Seconds = Annotated[
    float,
    Field(ge=_EARLIEST, le=_LATEST, description="seconds since the epoch, by the host's clock"),
    AfterValidator(_by_this_clock),
]
Times = Annotated[tuple[float, ...], AfterValidator(_all_by_this_clock)]
"""Many `Seconds`, of a series."""
# Clamped and not refused: a count that was overtaken makes a little more than all of it.
Share = Annotated[float, AfterValidator(lambda share: min(1.0, max(0.0, share)))]
JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]


class Severity(StrEnum):
    """The weight of a finding or a notice."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Page(Wire):
    """One page of a list; `next_cursor` is None on the last page."""

    next_cursor: str | None = None


class Version(Wire):
    """The protocol and the program of a host; `run_id` names this run of the host, `seq` its newest event."""

    major: int
    minor: int
    program: str
    run_id: str
    seq: int


def _unsaid(asked: BaseModel) -> dict[Any, Any]:
    """Return the fields of a request, and of the requests in it, that are empty as by default."""
    found: dict[Any, Any] = {}
    for name, field in type(asked).model_fields.items():
        value = getattr(asked, name)
        if isinstance(value, BaseModel):
            inner = _unsaid(value)
        elif isinstance(value, list | tuple):
            each = {number: _unsaid(one) for number, one in enumerate(value) if isinstance(one, BaseModel)}
            inner = {number: unsaid for number, unsaid in each.items() if unsaid}
        else:
            inner = {}
        if inner:
            found[name] = inner
        elif not value and not field.is_required() and value == field.get_default(call_default_factory=True):
            found[name] = True
    return found


def _writable(value: Any) -> Any:
    """The same with a question mark for each half of a letter, and large whole numbers as texts."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_writable(key): _writable(inner) for key, inner in value.items()}
    if isinstance(value, int) and not -_MOST <= value <= _MOST:
        return str(value)
    return [_writable(inner) for inner in value] if isinstance(value, list) else value
