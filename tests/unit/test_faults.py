"""The table of faults in docs/FAULTS.md names tests that exist, and every test of a fault."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| (?P<fault>[^|]+) \| (?P<wanted>[^|]+) \| `(?P<file>[\w/.]+)::(?P<test>\w+)` \|$")
LINES = (ROOT / "docs/FAULTS.md").read_text(encoding="utf-8").splitlines()
ROWS = [found for line in LINES if (found := ROW.match(line))]


@cache
def named_in(file: str) -> frozenset[str]:
    """The tests in a file."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    names = (node.name for node in tree.body if isinstance(node, functions))
    return frozenset(name for name in names if name.startswith("test_"))


def test_every_line_of_a_table_is_a_fault_with_its_end_and_its_test() -> None:
    lines = [line for line in LINES if line.startswith("|") and line != "|---|---|---|"]
    heads = [line for line in lines if line.startswith("| fault | wanted")]
    assert len(lines) - len(heads) == len(ROWS)
    assert len(ROWS) >= 24


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["test"])
def test_the_test_of_a_fault_exists(row: re.Match[str]) -> None:
    assert row["test"] in named_in(row["file"])


def test_each_test_of_a_fault_is_in_the_table() -> None:
    named = {(row["file"], row["test"]) for row in ROWS}
    there = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in (ROOT / "tests/integration/faults").glob("test_*.py")
        for name in named_in(path.relative_to(ROOT).as_posix())
    }
    assert there
    assert there <= named
