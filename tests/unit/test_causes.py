"""A failure that is met at keys, routes, plans, models and starts written down says why it is one."""

import ast
from pathlib import Path

import pytest

HOST = Path(__file__).parents[2] / "engine_host"
PLACES = """
core/keys cli/routes deploy engines/process library/hub/listing.py
operations/on_demand operations/plans.py
"""


@pytest.mark.parametrize("place", PLACES.split())
def test_a_failure_in_words_of_its_own_has_a_cause(place: str) -> None:
    path = HOST / place
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    assert files
    without = [
        f"{file.name}:{call.lineno}" for file in files for call in _raised(file) if not _has_cause(call)
    ]
    assert without == []


def _raised(file: Path) -> list[ast.Call]:
    """Return the failures whose sentence stands in the code; another one brings its own cause."""
    calls = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
    errors = [one for one in calls if isinstance(one.func, ast.Name) and one.func.id == "HostError"]
    return [one for one in errors if len(one.args) > 1 and isinstance(one.args[1], ast.Constant | ast.Call)]


def _has_cause(call: ast.Call) -> bool:
    return any(word.arg == "cause" for word in call.keywords)
