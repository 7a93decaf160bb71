"""One request of an operation and its answer, as both clients send and read them."""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine_host.core.errors import HostError
from engine_host.core.outside import json_text
from engine_host.protocol.base import Command, Query
from engine_host.protocol.errors import Action, Fix, Reason
from engine_host.protocol.events import EVENT, Event
from engine_host.protocol.language import tr
from engine_host.protocol.operations.definition import Answer, Nothing, Operation

PAUSE = 0.2
"""Seconds before a command is sent once more."""
NOTHING = Nothing()
_TIMES = frozenset({"since", "until"})
"""The parameters of queries that are times."""


@dataclass(frozen=True)
class Sent:
    """A request that goes out; `seconds` is how long its answer may take at least."""

    method: str
    path: str
    query: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    content: str | None = None
    seconds: float = 10.0
    key: str = field(default_factory=lambda: secrets.token_hex(16))

    @property
    def headers(self) -> dict[str, str]:
        """The key of a command makes a second try safe: the host does the thing once."""
        found = {} if self.method == "GET" else {"Idempotency-Key": self.key}
        return found if self.content is None else found | {"Content-Type": "application/json"}

    @property
    def tries(self) -> int:
        """Count the times that it is sent when the connection fails."""
        return 1 if self.method == "GET" else 2


def request_of(
    operation: Operation[Any, Any], asked: Command | Query, path: Mapping[str, str], ahead: float = 0.0
) -> Sent:
    """The request of an operation; `ahead` are the seconds that the host's clock is ahead.

    Raises TypeError for other names than those of its path.

    Raises HostError(not_found) for a name that is empty, which would lead to another path.
    """
    if any(not value.strip() for value in path.values()):
        command = f"sndr {operation.command}" if operation.command else operation.name
        group = f"sndr {operation.command.partition(' ')[0]} --help" if operation.command else None
        raise HostError(
            Reason.NOT_FOUND,
            tr("The name that was given to `{command}` is empty.", command=command),
            cause="Nothing has an empty name; a variable of a script may have been empty.",
            fix=Fix(text="See which there are.", command=group),
            evidence={"operation": operation.name},
        )
    where = operation.path_for(path)
    if isinstance(asked, Query):
        return Sent(operation.method, where, query_of(asked, ahead), seconds=operation.seconds)
    return Sent(operation.method, where, content=asked.body(), seconds=operation.seconds)


def request_of_action(action: Action) -> Sent:
    """The request that mends a problem."""
    return Sent(action.method, action.path, content=json.dumps(action.body) if action.body else None)


def query_of(asked: Query, ahead: float = 0.0) -> dict[str, Any]:
    """Return what differs from the defaults, as it stands in the address; its times by the host's clock."""
    said = asked.model_dump(mode="json", exclude_defaults=True)
    return {name: value + ahead if ahead and name in _TIMES else value for name, value in said.items()}


def event_of(data: str, ahead: float = 0.0) -> Event | None:
    """Read an event; None for a kind that this version does not know, and for what is none.

    `ahead` are the seconds that the host's clock is ahead.
    """
    try:
        json_text.refuse_huge(data)
        return EVENT.validate_json(data, context=ahead or None)
    except ValueError:
        return None


def answer_of(operation: Operation[Any, Answer], content: bytes, ahead: float = 0.0) -> Answer:
    """Read an answer of a host whose clock is so many seconds ahead.

    Raises HostError(internal) for one that is not of its type.
    """
    try:
        json_text.refuse_huge(content)
        return operation.answer.model_validate_json(content, context=ahead or None)
    except ValueError as error:
        raise HostError(
            Reason.INTERNAL,
            tr("The engine host's answer to {operation} could not be read.", operation=operation.name),
            cause="The host and this program are of different versions.",
            fix=Fix(text="End it where it was started, then try again.", command="sndr quit"),
            evidence={"operation": operation.name, "body": content[:500].decode(errors="replace")},
        ) from error
