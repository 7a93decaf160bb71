"""The form in which an operation of the control API is defined; see `table` for all of them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar
from urllib.parse import quote

from pydantic import BaseModel

from engine_host.protocol.base import Command, Query, Wire
from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import JobKind

Asked = TypeVar("Asked", bound=Command | Query)
Answer = TypeVar("Answer", bound=BaseModel)
Method = Literal["GET", "POST", "PUT", "DELETE"]

_PARAMETER = re.compile(r"{(\w+)}")


class Nothing(Query):
    """The request of an operation that is asked nothing but its path."""


class Done(Wire):
    """The answer `{}`: it was done."""


# Of whatever makes a plan: model, engine, settings, patches.
OF_PLANS = (
    Reason.NOT_FOUND,
    Reason.MODEL_FILE_MISSING,
    Reason.PRESET_CONFLICT,
    Reason.SETTING_INVALID,
    Reason.UNSUPPORTED,
    Reason.ENGINE_UNUSABLE,
    Reason.FLAG_UNSUPPORTED,
    Reason.KV_CACHE_UNSAFE,
    Reason.PATCH_UNKNOWN,
    Reason.PATCH_CONFLICT,
    Reason.PATCH_CYCLE,
    Reason.PATCH_INVALID,
)


@dataclass(frozen=True)
class Operation(Generic[Asked, Answer]):
    """One operation; a request that is a `Query` travels in the address, a `Command` as the body.

    `reasons` are those of its own: any operation may answer with bad_request or internal. `command` is the
    command of the command line that does the same; `seconds` is how long a client waits for the answer at
    least.
    """

    name: str
    method: Method
    path: str
    request: type[Asked]
    answer: type[Answer]
    text: str
    status: int = 200
    reasons: tuple[Reason, ...] = ()
    job: JobKind | None = None
    command: str = ""
    seconds: float = 10.0

    @property
    def only_plans(self) -> bool:
        """True if it says what would be done, and does nothing of it."""
        return self.name.rpartition(".")[2].startswith("plan")

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names in its path, in order."""
        return tuple(_PARAMETER.findall(self.path))

    def path_for(self, parameters: Mapping[str, str]) -> str:
        """The path with its names filled in. Raises TypeError for other names than those of the path."""
        if set(parameters) != set(self.parameters):
            raise TypeError(f"{self.name} takes {self.parameters}, not {tuple(parameters)}")
        return _PARAMETER.sub(lambda found: _encoded(parameters[found[1]]), self.path)


def _encoded(name: str) -> str:
    """Return a name as one part of a path: no slash divides it, and `..` leads nowhere."""
    encoded = quote(name, safe="")
    return encoded if encoded.strip(".") else encoded.replace(".", "%2E")


@dataclass(frozen=True)
class EventStream(Generic[Asked]):
    """The path at which events are read as server-sent events."""

    name: str
    path: str
    request: type[Asked]
    text: str
    command: str = ""
