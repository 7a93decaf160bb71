"""An environment that is cut into parts arrives as it was, whatever comes first."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def parts(script: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module, with sizes that a test can write."""
    found = script("parts")
    for name, size in {"LARGE": 5000, "PIECE": 4096, "TOGETHER": 3000}.items():
        monkeypatch.setattr(found, name, size)
    return found


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A library in several pieces, small files, a link, a program, and bytecode."""
    folder = tmp_path / "site"
    (folder / "package" / "__pycache__").mkdir(parents=True)
    (folder / "package" / "library.so").write_bytes(os.urandom(10_000))
    for number in range(9):
        (folder / "package" / f"module_{number}.py").write_text(f"value = {number}\n" * 60)
    (folder / "package" / "link.py").symlink_to("module_1.py")
    (folder / "package" / "program").write_text("#!/bin/sh\n")
    (folder / "package" / "program").chmod(0o755)
    (folder / "package" / "__pycache__" / "module_1.pyc").write_bytes(b"0")
    return folder


def test_a_tree_comes_back_from_its_parts_in_any_order(parts: ModuleType, site: Path, tmp_path: Path) -> None:
    count = parts.cut(site, tmp_path / "parts", 6000)
    assert count > 1
    names = [f"{number:02}" for number in range(count)]
    for name in reversed(names):
        assert sum(path.stat().st_size for path in (tmp_path / "parts" / name).glob("*.xz")) <= 6000
        have = parts.restore(tmp_path / "parts" / name, tmp_path / "there")
    assert have == names
    came = {str(path.relative_to(tmp_path / "there")): path for path in (tmp_path / "there").rglob("*")}
    for path in site.rglob("*"):
        if "__pycache__" in path.parts:
            continue
        arrived = came[str(path.relative_to(site))]
        assert arrived.is_symlink() == path.is_symlink()
        if path.is_file():
            assert arrived.read_bytes() == path.read_bytes()
            assert arrived.stat().st_mode == path.stat().st_mode
    assert not any("__pycache__" in name for name in came)


def test_an_archive_that_arrived_damaged_is_not_unpacked(
    parts: ModuleType, site: Path, tmp_path: Path
) -> None:
    parts.cut(site, tmp_path / "parts", 10**6)
    part = tmp_path / "parts" / "00"
    broken = part / json.loads((part / parts.LISTED).read_text())[0]["name"]
    broken.write_bytes(broken.read_bytes()[:-1])
    with pytest.raises(ValueError, match="damaged"):
        parts.restore(part, tmp_path / "there")


def test_an_archive_larger_than_a_part_is_said(parts: ModuleType, site: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a part may have 1000"):
        parts.cut(site, tmp_path / "parts", 1000)
