"""The window in other languages: installed before any text is made, all translated, and nothing cut off."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine_host.client.language import PSEUDO

ROOT = Path(__file__).resolve().parents[3]
# Prints the modules with texts at their top that are there before the language is.
_EARLY = """
import sys
from sndr_gui.kit import language

def spied(chosen):
    for name, module in sorted(sys.modules.items()):
        if not name.startswith("engine_host.client.language") and {"tr", "ntr"} & vars(module).keys():
            print("EARLY", name)
    raise SystemExit(0)

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


def test_nothing_with_texts_is_imported_before_the_language(tmp_path: Path) -> None:
    told = run("-c", _EARLY, SNDR_HOME=str(tmp_path), SNDR_LANGUAGE="de")
    assert (told.returncode, told.stdout) == (0, ""), told.stderr[-2000:]
