"""Hostile names and texts: refused where they come in, before anything is written down of them."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from engine_host.protocol.text import FileName, Line, Repository, Text

# Characters at which YAML, systemd, shells or terminals end a line, or begin an order.
BREAKS = ["\n", "\r", "\x0b", "\x0c", "\x00", "\x1b", "\x7f", "\x85", "\x9b", "\u2028", "\u2029", "\ud800"]


def accepts(kind: Any, text: str) -> bool:
    try:
        TypeAdapter(kind).validate_python(text)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize("letter", BREAKS)
def test_no_line_holds_what_ends_one(letter: str) -> None:
    assert not accepts(Line, f"a{letter}b")
    assert not accepts(FileName, f"a{letter}b.gguf")
    assert not accepts(Repository, f"org/na{letter}me")
    assert accepts(Text, f"a{letter}b") is (letter == "\n")


@pytest.mark.parametrize(
    "name",
    [
        "../../.bash_profile",
        "a/../b",
        "/etc/passwd",
        "..",
        ".",
        "",
        "a//b",
        "~/x",
        "a\\..\\b",
        "./a",
        "x" * 256,
    ],
)
def test_a_file_name_stays_below_its_folder(name: str) -> None:
    assert not accepts(FileName, name)


@pytest.mark.parametrize(
    "name", ["model.safetensors", "BF16/model-00001-of-00002.gguf", "a b.gguf", "…é.json"]
)
def test_a_file_name_is_what_repositories_have(name: str) -> None:
    assert accepts(FileName, name)


@pytest.mark.parametrize(
    "name", ["model", "a/b/c", "../b", "a/..", "a b/c", "-a/b", "a/b;c", "a/$(b)", "a/", "/a"]
)
def test_a_repository_is_an_organisation_and_a_name(name: str) -> None:
    assert not accepts(Repository, name)


def test_a_repository_as_they_are() -> None:
    assert accepts(Repository, "lmstudio-community/gpt-oss-20b-GGUF")
    assert accepts(Repository, "Qwen/Qwen3.6-27B")
