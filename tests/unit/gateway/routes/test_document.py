"""docs/ENDPOINT.md has every path of the endpoint, with its method, and no other."""

import re
from pathlib import Path

from engine_host.gateway.routes import listed, table

TEXT = (Path(__file__).resolve().parents[4] / "docs" / "ENDPOINT.md").read_text(encoding="utf-8")
BELOW = {f"{start}ID" for start in (listed.MODEL_PREFIX, listed.LM_STUDIO_PREFIX)}


def paths(method: str) -> set[str]:
    """The paths in the rows of a method; of the closed ones for an empty name."""
    rows = [line.split(" | ") for line in TEXT.splitlines() if line.startswith("| `/")]
    found = [row[0] for row in rows if (row[1] if len(row) > 2 else "") == method]
    return {path for cell in found for path in re.findall(r"`(/[^`]*)`", cell)}


def test_the_tables_are_those_of_the_code() -> None:
    assert paths("POST") == {*table.POSTS, *table.ASKS, *table.POSTED_GETS, table.LOAD, table.UNLOAD}
    assert paths("GET") == {*table.GETS, *BELOW, table.METRICS}
    assert paths("") == set(table.CLOSED)


def test_each_short_path_is_told() -> None:
    told = TEXT.partition("is answered without it too (")[2].partition(")")[0]
    for short in table.SHORT:
        assert short.startswith(tuple(re.findall(r"`(/[^`]*)`", told))), short
