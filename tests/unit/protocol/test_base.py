"""Values on the wire: numbers are finite, and every name can be sent."""

import json
import os

import pytest
from pydantic import ValidationError

from engine_host.core.errors import HostError
from engine_host.core.outside.json_text import refuse_huge
from engine_host.protocol.base import Command, Page, Query, Wire
from engine_host.protocol.errors import ErrorAnswer, Reason
from engine_host.protocol.events import NoticeEvent
from engine_host.protocol.language import catalogue, tr
from engine_host.protocol.models import ModelFile, ModelOrigin
from engine_host.protocol.operations.table import OPERATIONS


class Reading(Wire):
    """A made-up value."""

    value: float


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
def test_a_number_is_finite(number: float) -> None:
    with pytest.raises(ValidationError):
        Reading(value=number)
    with pytest.raises(ValidationError):
        Reading.model_validate_json('{"value": 1e999}')
    for base in (Wire, Command, Query):
        assert base.model_config["allow_inf_nan"] is False


@pytest.mark.parametrize("at", [1e300, -1e300, 1e12])
def test_a_time_is_one_that_a_calendar_has(at: float) -> None:
    with pytest.raises(ValidationError):
        NoticeEvent(at=at, key="k", severity="info", text="t")


def test_a_name_that_is_no_text_is_sent_with_a_mark() -> None:
    odd = os.fsdecode(b"/models/\xff.gguf")
    file = ModelFile(
        id="a", name="a", path=odd, origin=ModelOrigin.FOLDER, found_in="", size=1, format="GGUF"
    )
    sent = file.model_dump_json()
    assert json.loads(sent)["path"] == "/models/?.gguf"
    assert ModelFile.model_validate_json(sent).path == "/models/?.gguf"


def test_a_number_of_a_damaged_file_does_not_make_the_answer_unreadable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # As a host does: the message travels with its values.
    monkeypatch.setattr(catalogue._Installed, "sends", True)
    length = (1 << 64) - 7
    fault = HostError(
        Reason.MODEL_FILE_DAMAGED,
        tr("{path} is damaged: {detail}.", path="m.gguf", detail=tr("{length} bytes", length=length)),
        evidence={"length": length, "at": [1 << 70, -(1 << 63) - 1, 7]},
    )
    sent = ErrorAnswer(error=fault.problem).model_dump_json()
    refuse_huge(sent)
    heard = ErrorAnswer.model_validate_json(sent).error
    assert heard.message == f"m.gguf is damaged: {length} bytes."
    assert heard.evidence == {"length": str(length), "at": [str(1 << 70), str(-(1 << 63) - 1), 7]}


def test_a_time_of_many_digits_is_no_huge_number(monkeypatch: pytest.MonkeyPatch) -> None:
    rewritten: list[object] = []
    monkeypatch.setattr("engine_host.protocol.base._writable", rewritten.append)
    problem = HostError(Reason.INTERNAL, "m", evidence={"waited": 0.0001234567890123456}).problem
    assert "0.0001234567890123456" in problem.model_dump_json()
    assert not rewritten


def test_every_page_says_at_which_event_it_is_true() -> None:
    assert OPERATIONS, "what answers with a page is imported"
    lacking = [page.__name__ for page in Page.__subclasses__() if "seq" not in page.model_fields]
    assert not lacking
