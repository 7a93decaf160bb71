"""Each row of docs/SECURITY_MODEL.md names a test that exists, and each promise is one that is made."""

import re
from pathlib import Path

import pytest

from tests.unit.test_faults import named_in

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs/SECURITY_MODEL.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\|(?: [^|]+ \|){3} `(?P<file>[\w/.]+)::(?P<test>\w+)` \|$", re.MULTILINE)
ROWS = list(ROW.finditer(TEXT))
PROMISE = re.compile(
    r'^\| "(?P<words>[^|]+)" \| `(?P<where>[\w.]+)` \| `(?P<file>[\w/.]+)::(?P<test>\w+)` \|$', re.MULTILINE
)
PROMISES = list(PROMISE.finditer(TEXT))


def test_every_line_of_the_table_is_a_row() -> None:
    assert len(ROWS) + len(PROMISES) == TEXT.count("\n| ") - 2
    assert (len(ROWS) > 20, len(PROMISES) > 15) == (True, True)


@pytest.mark.parametrize("row", ROWS + PROMISES, ids=lambda row: row["test"])
def test_what_a_row_names_exists(row: re.Match[str]) -> None:
    assert row["test"] in named_in(row["file"])


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise["words"][:40])
def test_a_promise_stands_where_it_is_said_to(promise: re.Match[str]) -> None:
    text = " ".join((ROOT / promise["where"]).read_text(encoding="utf-8").split())
    assert promise["words"] in text
