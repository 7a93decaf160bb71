"""The operations are defined soundly, and docs/CONTROL_API.md and the command line follow them."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import NoneType
from typing import Any, get_args

import click
import pytest
from pydantic import BaseModel, TypeAdapter

from engine_host.cli.root import root
from engine_host.core.findings.starts import STARTS
from engine_host.protocol.base import Command, Query, Severity
from engine_host.protocol.engines import Engine, StopEngine
from engine_host.protocol.jobs import Job
from engine_host.protocol.operations.definition import Operation
from engine_host.protocol.operations.document import document
from engine_host.protocol.operations.table import EVENTS, OPERATIONS, PATCH, START, START_WITHOUT

ROOT = Path(__file__).resolve().parents[4]


def test_each_is_defined_once() -> None:
    names = Counter(operation.name for operation in OPERATIONS)
    places = Counter((operation.method, operation.path) for operation in OPERATIONS)
    assert max(names.values()) == max(places.values()) == 1


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_a_definition_agrees_with_itself(operation: Operation[Command | Query, Job]) -> None:
    reads = operation.method in {"GET", "DELETE"}
    assert issubclass(operation.request, Query) or not reads, "what only reads or removes has no body"
    assert (operation.answer in {Job, Engine}) or operation.job is None
    assert operation.text.endswith(".")
    assert operation.path.startswith("/v1/")


def test_what_is_none_in_a_request_may_be_left_out() -> None:
    """Clients send no field that is None, so None is what a host takes where none is sent."""
    kinds = {one.request for one in OPERATIONS if issubclass(one.request, Command)}
    fields = [(kind, name, field) for kind in _with_parts(kinds) for name, field in kind.model_fields.items()]
    nullable = [
        (kind.__name__, name, field) for kind, name, field in fields if NoneType in get_args(field.annotation)
    ]
    assert len(nullable) > 50
    wrong = [
        (kind, name)
        for kind, name, field in nullable
        if field.is_required() or field.get_default(call_default_factory=True) is not None
    ]
    assert not wrong


@pytest.mark.parametrize("command", sorted({EVENTS.command, *(one.command for one in OPERATIONS)} - {""}))
def test_the_command_that_does_the_same_exists(command: str) -> None:
    found: click.Command | None = root
    for word in command.split():
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), word)
    assert found is not None


_MEASURED = {"LabRun"}
"""Reports of somebody else: their figures are compared with others, and nothing is counted up to them."""


def test_every_number_that_a_client_sends_has_an_upper_bound() -> None:
    """What is counted up to must end: a step of telemetry of 2^31 seconds held up everybody for minutes."""
    unbounded: set[str] = set()
    for operation in OPERATIONS:
        schema = TypeAdapter(operation.request).json_schema()
        unbounded |= set(_unbounded(schema, operation.request.__name__, schema.get("$defs", {}), ()))
    assert not unbounded


def _unbounded(
    schema: dict[str, Any], place: str, named: dict[str, Any], above: tuple[str, ...]
) -> Iterator[str]:
    """Each number without a largest value; `above` are the names that lead here."""
    reference = schema.get("$ref", "").rpartition("/")[2]
    if reference and reference not in {*above, *_MEASURED}:
        yield from _unbounded(named[reference], reference, named, (*above, reference))
    bounds = schema.keys() & {"maximum", "exclusiveMaximum", "enum", "const"}
    if schema.get("type") in {"integer", "number"} and not bounds:
        yield place
    for name, inner in schema.get("properties", {}).items():
        yield from _unbounded(inner, f"{place}.{name}", named, above)
    several = [one for key in ("anyOf", "oneOf", "allOf", "prefixItems") for one in schema.get(key, ())]
    for inner in (*several, schema.get("items"), schema.get("additionalProperties")):
        if isinstance(inner, dict):
            yield from _unbounded(inner, place, named, above)


def test_names_in_a_path_are_filled_in_and_quoted() -> None:
    assert PATCH.path_for({"id": "a/b ?"}) == "/v1/patches/a%2Fb%20%3F"
    assert START_WITHOUT.parameters == ("id", "patch")
    with pytest.raises(TypeError, match=r"engines\.start_without"):
        START_WITHOUT.path_for({"id": "engine"})


@pytest.mark.parametrize(("said", "now"), [("1", True), ("TRUE", True), ("yes", False), ("", False)])
def test_an_engine_is_ended_at_once_by_a_clear_word_alone(said: str, now: bool) -> None:
    assert StopEngine.model_validate({"now": said}).now is now


def test_a_start_may_be_refused_with_whatever_stops_it_in_its_plan() -> None:
    stops = {text.reason for text in STARTS.values() if text.severity is Severity.ERROR and text.reason}
    assert stops <= set(START.reasons), "and docs/CONTROL_API.md says so"


def test_the_document_is_what_the_definitions_say() -> None:
    written = (ROOT / "docs" / "CONTROL_API.md").read_text(encoding="utf-8")
    assert written == document(), "python -m engine_host.protocol.operations.document > docs/CONTROL_API.md"


def _with_parts(kinds: Iterable[type[BaseModel]]) -> set[type[BaseModel]]:
    """The types and those that their fields have."""
    found: set[type[BaseModel]] = set()
    left = [*kinds]
    while left:
        if (kind := left.pop()) not in found:
            found.add(kind)
            left += [part for field in kind.model_fields.values() for part in _models(field.annotation)]
    return found


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)
