"""Docstrings say what a thing is or does in a sentence; none begins like the title of an essay."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TITLES = {"what", "whether", "which", "where", "who", "whose", "how"}
PACKAGES = sorted(
    folder.relative_to(ROOT).as_posix()
    for top in ("engine_host", "sndr_gui")
    for folder in (ROOT / top).iterdir()
    if any(folder.rglob("*.py"))
)


def docstrings(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of every docstring of a file."""
    left: list[ast.AST] = [ast.parse(file.read_text(encoding="utf-8"))]
    while left:
        node = left.pop()
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False)
            if text and text.strip():
                yield node.body[0].lineno, text.strip()
        # Nothing below an expression has one, and most of a tree is expressions.
        left += (one for one in ast.iter_child_nodes(node) if not isinstance(one, ast.expr))


@pytest.mark.parametrize("package", PACKAGES)
def test_no_docstring_begins_with_a_question_word(package: str) -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for file in sorted((ROOT / package).rglob("*.py"))
        for line, text in docstrings(file)
        if text.split()[0].strip(",:").lower() in TITLES
    ]
    assert not found, "write “Return the …”, “Parse …” or name the thing:\n" + "\n".join(found)
