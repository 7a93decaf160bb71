"""Sentences of the window name settings by their captions, and commands in them keep the keys."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine_host.client.first_run.overview import no_others
from engine_host.protocol.engine_settings.table import SETTINGS
from engine_host.protocol.language import english, name_settings, tr, translated
from sndr_gui.models.settings.captions import use_captions
from sndr_gui.models.settings.entries import ENTRIES

PROJECT = Path(__file__).resolve().parents[3]


@pytest.fixture
def captions() -> Iterator[None]:
    use_captions()
    yield
    name_settings(None)


def messages() -> list[str]:
    """Every message of the program, by its own catalogue."""
    text = (PROJECT / "resources" / "locales" / "sndr.pot").read_text(encoding="utf-8")
    texts = re.findall(r'^msgid ((?:"(?:[^"\\]|\\.)*"\n)+)', text, re.MULTILINE)
    return ["".join(json.loads(line) for line in one.splitlines()) for one in texts]


def test_no_sentence_of_the_window_has_a_key_but_in_a_command(captions: None) -> None:
    names = [entry.name for entry in ENTRIES] + [name for name in SETTINGS if "_" in name]
    key = re.compile(r"(?<![\w.])(?<!set )(" + "|".join(map(re.escape, names)) + r")(?![\w}:])")
    places = re.compile(r"\{[^}]*\}")
    assert len(messages()) > 4_000
    left = [one for one in messages() if key.search(places.sub("", translated(one)))]
    assert left == []


def test_places_for_values_keep_their_names(captions: None) -> None:
    """`a step of {batched_tokens:,} tokens` was said as `a step of {“Tokens a step”:,} tokens`."""
    places = re.compile(r"\{[^}]*\}")
    assert [one for one in messages() if places.findall(one) != places.findall(translated(one))] == []


def test_the_terminal_and_reports_for_others_have_the_keys(captions: None) -> None:
    assert "While “Models of other programs” is on" in no_others()
    assert "those of “Model folders”." in no_others()
    assert "settings set endpoint.host 0.0.0.0" in translated("Run sndr settings set endpoint.host 0.0.0.0.")
    assert tr("Set gpu_memory to {value:.2f}, or end the others.", value=0.5).startswith("Set “")
    with english():
        assert "While models.other_programs is on" in no_others()
    name_settings(None)
    assert "While models.other_programs is on" in no_others()
