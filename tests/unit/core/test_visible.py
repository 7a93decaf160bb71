"""Hostile text on a terminal: shown, never obeyed; and the JSON of it reads back as it was."""

import ast
import json
import unicodedata
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from engine_host.core.visible import visible, visible_json

CLI = Path(__file__).resolve().parents[3] / "engine_host" / "cli"


def obeyed(letter: str) -> bool:
    """Return True for a character that a terminal obeys instead of printing it."""
    steers = letter in "\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    return letter not in "\n\t" and (unicodedata.category(letter) == "Cc" or steers)


def test_escapes_are_pictures() -> None:
    assert visible("a\x1b]52;c;ZXZpbA==\x07b") == "a␛]52;c;ZXZpbA==␇b"
    assert visible("\x9b31m\u202eevil\x7f") == "<U+009B>31m<U+202E>evil␡"
    assert visible("one\n\ttwo\r") == "one\n\ttwo␍"


@given(st.text())
def test_nothing_that_steers_is_left(text: str) -> None:
    assert not any(map(obeyed, visible(text)))
    told = visible_json(json.dumps({"text": text}, ensure_ascii=False))
    assert not any(map(obeyed, told))
    assert json.loads(told) == {"text": text}


def test_every_command_prints_through_one_function() -> None:
    for path in CLI.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {
                "click.echo",
                "print",
                "click.secho",
            }:
                shown = ast.unparse(node.args[0]) if node.args else ""
                assert "visible" in shown, f"{path.name}:{node.lineno} prints {shown}"
