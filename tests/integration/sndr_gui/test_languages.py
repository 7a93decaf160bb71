"""The window in other languages: installed before any text is made, all translated, and nothing cut off."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine_host.protocol.language import PSEUDO

ROOT = Path(__file__).resolve().parents[3]
# Prints the places that make a text before the language is installed.
_EARLY = """
import sys
from engine_host.protocol.language import catalogue

def made(message, *_others, **_more):
    caller = sys._getframe(2)
    print("EARLY", caller.f_globals["__name__"], caller.f_lineno, message)
    return message

def spied(chosen):
    raise SystemExit(0)

catalogue.Said.of = made
from sndr_gui.kit import language
language.install = spied
from sndr_gui.__main__ import main
main(["--another"])
"""


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python in the tree; its output."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen", **variables},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.parametrize("language", [PSEUDO, "ru", "de", "ja", "zh"])
def test_every_page_is_translated_and_whole(language: str) -> None:
    asked = ("-m", "pytest", "-q", "-n", "0", "-p", "tests.views.language.in_a_language")
    told = run(*asked, "tests/views/language/pages_in_a_language.py", SNDR_LANGUAGE=language)
    assert told.returncode == 0, told.stdout[-4000:]


def test_no_text_is_made_before_the_language_is_installed(tmp_path: Path) -> None:
    told = run("-c", _EARLY, SNDR_HOME=str(tmp_path), SNDR_LANGUAGE="de")
    assert (told.returncode, told.stdout) == (0, ""), told.stderr[-2000:]
