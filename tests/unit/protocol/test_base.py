"""Values on the wire: numbers are finite, and every name can be sent."""

import json
import os

import pytest
from pydantic import ValidationError

from engine_host.protocol.base import Command, Page, Query, Wire
from engine_host.protocol.events import NoticeEvent
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


def test_every_page_says_at_which_event_it_is_true() -> None:
    assert OPERATIONS, "what answers with a page is imported"
    lacking = [page.__name__ for page in Page.__subclasses__() if "seq" not in page.model_fields]
    assert not lacking
