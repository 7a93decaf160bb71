"""Sentences of the host: sent in English with their messages, said again in the language of whoever reads."""

import json
from collections.abc import Iterator

import pytest

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.jobs import JobStep
from engine_host.protocol.language import catalogue, install, ntr, tr


@pytest.fixture(autouse=True)
def a_host(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(catalogue._Installed, "sends", True)
    yield
    install("en")


def problem() -> Problem:
    why = HostError(Reason.NOT_FOUND, tr("There is no engine {engine}.", engine="one"))
    return HostError(
        Reason.CONFLICT,
        ntr("It is a setting of {owner}.", "They are settings of {owner}.", 2, owner="vllm"),
        cause=tr("It cannot be read: {error}.", error=why),
        fix=Fix(text="Look again."),
    ).problem


def test_english_travels_with_the_message_and_its_values() -> None:
    sent = json.loads(problem().model_dump_json())
    assert sent["message"] == "They are settings of vllm."
    assert sent["cause"] == "It cannot be read: There is no engine one."
    assert sent["said"]["message"] == {
        "id": "It is a setting of {owner}.",
        "many": "They are settings of {owner}.",
        "number": 2,
        "values": {"owner": "vllm", "n": "2"},
    }
    assert sent["said"]["cause"]["values"]["error"]["values"] == {"engine": "one"}
    assert "said" not in sent["fix"]


def test_it_is_said_in_the_readers_language_and_passed_on_in_english() -> None:
    sent = problem().model_dump_json()
    install("de")
    read = Problem.model_validate_json(sent)
    assert read.message == "Das sind Einstellungen von vllm."
    assert read.cause == "Nicht lesbar: Es gibt keine Engine one."
    assert read.fix is not None
    assert read.fix.text == "Noch einmal ansehen."
    assert json.loads(read.model_dump_json()) == json.loads(sent)


def test_a_text_of_an_older_host_and_of_another_program_stays() -> None:
    install("ja")
    step = JobStep.model_validate({"number": 1, "of": 2, "name": "Load the model", "detail": "qwen.gguf"})
    assert step.name == tr("Load the model") != "Load the model"
    assert step.detail == "qwen.gguf"


@pytest.mark.parametrize(
    "said",
    [1, [], {"name": 1}, {"name": {"id": 5, "values": {}}}, {"name": {"id": "x"}}, {"name": {"values": {}}},
     {"name": {"id": "a {b:zz}", "values": {"b": 1}}}, {"name": {"id": "x", "number": "9", "values": {}}}],
)  # fmt: skip
def test_messages_that_make_no_sense_leave_the_text(said: object) -> None:
    step = JobStep.model_validate({"number": 1, "of": 1, "name": "Text", "said": said})
    assert step.name == "Text"
