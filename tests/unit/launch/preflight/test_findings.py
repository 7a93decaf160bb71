"""Every finding that code writes says what to do; one that stops a start says why for code, too."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
SOURCES = [
    path
    for pattern in (
        "launch/**/*.py",
        "catalog/*.py",
        "operations/presets/*.py",
        "gateway/access/*.py",
        "daemon/*.py",
    )
    for path in sorted((ROOT / "engine_host").glob(pattern))
]


def findings() -> Iterator[tuple[str, dict[str, ast.expr]]]:
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding":
                said = {word.arg: word.value for word in node.keywords if word.arg is not None}
                yield f"{path.stem}:{node.lineno}", said


FOUND = dict(findings())


def test_there_are_findings_to_look_at() -> None:
    assert len(FOUND) > 30


@pytest.mark.parametrize("place", FOUND)
def test_a_finding_says_what_to_do(place: str) -> None:
    assert "fix" in FOUND[place]
    if "Severity.ERROR" in ast.unparse(FOUND[place]["severity"]):
        assert "reason" in FOUND[place]
