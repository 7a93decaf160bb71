"""Each row of docs/SECURITY_MODEL.md names a test that exists."""

import re
from pathlib import Path

import pytest

from tests.unit.test_faults import named_in

TEXT = (Path(__file__).resolve().parents[2] / "docs/SECURITY_MODEL.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\|(?: [^|]+ \|){3} `(?P<file>[\w/.]+)::(?P<test>\w+)` \|$", re.MULTILINE)
ROWS = list(ROW.finditer(TEXT))


def test_every_line_of_the_table_is_a_row() -> None:
    assert len(ROWS) == TEXT.count("\n| ") - 1
    assert len(ROWS) > 20


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["test"])
def test_what_a_row_names_exists(row: re.Match[str]) -> None:
    assert row["test"] in named_in(row["file"])
