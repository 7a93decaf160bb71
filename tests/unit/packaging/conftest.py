"""The scripts of packaging/ import each other by bare name, as scripts in one folder do."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

PACKAGING = Path(__file__).parents[3] / "packaging"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Import one of the scripts by name."""
    for folder in ("demo_model", "bench", "gpu", "frozen", "languages", "linux"):
        monkeypatch.syspath_prepend(str(PACKAGING / folder))

    def load(name: str) -> ModuleType:
        sys.modules.pop(name, None)
        return importlib.import_module(name)

    return load
