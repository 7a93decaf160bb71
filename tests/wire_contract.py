"""Requests and answers that the table of operations allows; the fakes of the tests are held to it."""

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError

from engine_host.api.answers import refused
from engine_host.protocol.base import Query
from engine_host.protocol.errors import ErrorAnswer, Reason
from engine_host.protocol.operations.definition import Nothing, Operation
from engine_host.protocol.operations.table import OPERATIONS

# Of any operation: what was sent is wrong, who asks may not, or the host has a fault or an old client.
_ANY = {Reason.BAD_REQUEST, Reason.UNAUTHORIZED, Reason.INTERNAL, Reason.PROTOCOL_MISMATCH}


class WireContract:
    """Finds what a request or an answer has that the table does not allow."""

    def __init__(self, operations: Iterable[Operation[Any, Any]] = OPERATIONS) -> None:
        # A path without names is meant before one that has some.
        self._operations = sorted(operations, key=lambda one: bool(one.parameters))

    def operation(self, method: str, path: str) -> Operation[Any, Any] | None:
        """Return the operation at a path; None where there is none."""
        for one in self._operations:
            if one.method == method and _pattern(one.path).fullmatch(path):
                return one
        return None

    def request_fault(self, operation: Operation[Any, Any], query: Mapping[str, str], body: Any) -> str:
        """Return what is wrong with a request; empty where nothing is."""
        try:
            if issubclass(operation.request, Query):
                if body is not None:
                    return f"{operation.name} takes no body"
                unknown = set(query) - set(operation.request.model_fields)
                if unknown and operation.request is not Nothing:
                    return f"{operation.name} takes no {', '.join(sorted(unknown))}"
                operation.request.model_validate(dict(query))
            else:
                operation.request.model_validate_json(json.dumps(body or {}))
        except ValidationError as error:
            return f"request of {operation.name}: {error}"
        return ""

    def answer_fault(self, operation: Operation[Any, Any], status: int, content: Any) -> str:
        """Return what is wrong with an answer, given as JSON; empty where nothing is."""
        if status >= 400:
            return self._refusal_fault(operation, status, content)
        if status != operation.status:
            return f"{operation.name} answers with {operation.status}, not {status}"
        return _type_fault(operation.name, operation.answer, content)

    def _refusal_fault(self, operation: Operation[Any, Any], status: int, content: Any) -> str:
        if fault := _type_fault(operation.name, ErrorAnswer, content):
            return fault
        problem = ErrorAnswer.model_validate(content).error
        usual = refused(problem).status_code
        if status != usual:
            return f"{operation.name}: {problem.reason.value} comes with {usual}, not {status}"
        if problem.reason not in _ANY and problem.reason not in operation.reasons:
            return f"{operation.name} is never refused with {problem.reason.value}"
        return ""


@cache
def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)))


def _type_fault(name: str, kind: type[BaseModel], content: Any) -> str:
    try:
        read = kind.model_validate_json(json.dumps(content))
    except ValidationError as error:
        return f"answer of {name}: {error}"
    strange = [*_strange(content, json.loads(read.model_dump_json()))]
    return f"answer of {name}: there is no {', '.join(strange)}" if strange else ""


def _strange(given: Any, read: Any, path: str = "") -> Iterable[str]:
    """The keys that a client would not see: a host sends none that its types do not have."""
    if isinstance(given, dict) and isinstance(read, dict):
        for key, value in given.items():
            if key in read:
                yield from _strange(value, read[key], f"{path}.{key}".lstrip("."))
            else:
                yield f"{path}.{key}".lstrip(".")
    elif isinstance(given, list) and isinstance(read, list):
        for place, (one, other) in enumerate(zip(given, read, strict=False)):
            yield from _strange(one, other, f"{path}[{place}]")
