"""The kernel's count of what its out-of-memory killer ended."""

from pathlib import Path

import pytest

from engine_host.operations.autopsies.oom_kills import oom_kills


@pytest.mark.parametrize(
    ("text", "count"),
    [(b"pgfault 7\noom_kill 3\nx 1\n", 3), (b"pgfault 7\n", None), (b"oom_kill x\n", None), (b"\xff", None)],
)
def test_it_is_one_line_of_many(text: bytes, count: int | None, tmp_path: Path) -> None:
    path = tmp_path / "vmstat"
    path.write_bytes(text)
    assert oom_kills(path) == count


def test_a_system_without_it_is_not_counted(tmp_path: Path) -> None:
    assert oom_kills(tmp_path / "none") is None
