"""Messages in a language: what is looked up, what falls back to English, and which language is chosen."""

import gettext
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine_host.core.findings.table import finding
from engine_host.protocol.language import (
    LANGUAGES,
    PSEUDO,
    catalogue,
    chosen_language,
    install,
    language,
    ntr,
    tr,
)
from engine_host.protocol.launch.plans import Finding


class Said(gettext.NullTranslations):
    """A catalogue with the translations of a test."""

    def __init__(self, said: dict[str, str]) -> None:
        super().__init__()
        self._said = said

    def gettext(self, message: str) -> str:
        return self._said.get(message, message)


@pytest.fixture(autouse=True)
def english_again() -> Iterator[None]:
    sends = catalogue._Installed.sends
    yield
    install("en")
    catalogue._Installed.sends = sends


def test_values_stand_at_their_names() -> None:
    assert tr("{name} runs on {gpu}", name="one", gpu="{name}") == "one runs on {name}"
    assert tr("50 % {of it}") == "50 % {of it}"


def test_a_translation_with_a_value_that_nobody_gives_is_english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue._Installed, "messages", Said({"{name} runs": "{nmae} läuft"}))
    assert tr("{name} runs", name="one") == "one runs"


@pytest.mark.parametrize(
    ("speaks", "number", "said"),
    [
        ("en", 1, "1 stream"),
        ("en", 1200, "1,200 streams"),
        ("ru", 1, "1 поток"),
        ("ru", 3, "3 потока"),
        ("ru", 11, "11 потоков"),
        ("ru", 21, "21 поток"),
        ("de", 2, "2 Streams"),
    ],
)
def test_a_number_has_its_form(speaks: str, number: int, said: str) -> None:
    install(speaks)
    assert ntr("{n} stream", "{n} streams", number) == said


@pytest.mark.parametrize("content", [None, b"", b"no catalogue", b"\xde\x12\x04\x95" + b"\xff" * 40])
def test_a_damaged_file_leaves_english(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "sndr.mo"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setattr(catalogue, "_file_of", lambda _language: path)
    install("de")
    assert language() == "en"
    assert tr("Settings") == "Settings"


@pytest.mark.parametrize("cut", [30, 200, 5_000, 100_000])
def test_a_file_that_is_cut_short_leaves_english(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cut: int
) -> None:
    path = tmp_path / "sndr.mo"
    path.write_bytes(catalogue._file_of("ja").read_bytes()[:cut])
    monkeypatch.setattr(catalogue, "_file_of", lambda _language: path)
    install("ja")
    assert (language(), tr("Settings")) == ("en", "Settings")


def test_a_finding_is_said_anew_with_its_values() -> None:
    catalogue._Installed.sends = True
    said = finding("port_in_use", wanted=8020, by="one", port=8021, url="http://127.0.0.1:8021")
    sent = said.model_dump_json()
    install("ru")
    again = Finding.model_validate_json(sent)
    assert again.message != said.message
    assert "8021" in again.message
    assert again.fix is not None
    assert said.fix is not None
    assert again.fix.text != said.fix.text
    assert again.model_dump_json() == sent


def test_the_systems_language_counts_where_none_is_chosen() -> None:
    assert chosen_language("ja", {"LANG": "de_DE.UTF-8"}) == "ja"
    assert chosen_language("system", {"LANG": "de_DE.UTF-8"}) == "de"
    assert chosen_language("system", {"LANGUAGE": "fr:ru", "LANG": "de_DE.UTF-8"}) == "ru"
    assert chosen_language("system", {"LC_ALL": "C", "LANG": "de_DE.UTF-8"}) == "en"
    assert chosen_language("system", {"LANG": "zh_CN.UTF-8"}) == "zh"
    assert chosen_language("nonsense", {"LANG": "fr_FR"}) == "en"


def test_every_language_is_there_and_the_pseudo_language_marks_all() -> None:
    for name in LANGUAGES:
        install(name)
        assert language() == name
    install(PSEUDO)
    assert tr("Settings for {name}", name="one").startswith("‹")
    assert "one" in tr("Settings for {name}", name="one")
