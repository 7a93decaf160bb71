"""The operations are defined soundly, and docs/CONTROL_API.md and the command line follow them."""

from collections import Counter
from pathlib import Path

import click
import pytest

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


@pytest.mark.parametrize("command", sorted({EVENTS.command, *(one.command for one in OPERATIONS)} - {""}))
def test_the_command_that_does_the_same_exists(command: str) -> None:
    found: click.Command | None = root
    for word in command.split():
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), word)
    assert found is not None


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
