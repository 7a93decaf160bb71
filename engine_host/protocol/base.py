"""The bases of all wire types, and the version of the protocol."""

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

PROTOCOL_MAJOR = 1
PROTOCOL_MINOR = 0
CALLER = "x-sndr-caller"
"""The header by which the requests of one command are known as its own."""


class Wire(BaseModel):
    """A value sent by the host; a field the reader does not know is ignored, so an older window works."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Command(BaseModel):
    """A value sent to the host; an unknown field is an error, so a misspelt one is never dropped."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Query(BaseModel):
    """The parameters after the `?` of a path; an unknown name is ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


Seconds = Annotated[float, Field(description="seconds since the epoch, from the host's clock")]
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
