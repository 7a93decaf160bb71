"""The archive of packages: made once, and again where it is broken."""

import asyncio
import gzip
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from engine_host.remote.install import packages
from engine_host.remote.install.own_wheel import LocalFile
from engine_host.remote.install.packages import Platform, packages_for

PLATFORM = Platform((3, 12), "x86_64-manylinux_2_39")


@pytest.fixture
def works(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """FAKE uv: a package of two files, written with a pause between them; the folders that it got."""
    seen: list[Path] = []

    async def install(_platform: Platform, work: Path, _log: Path, _tell: Callable[[str], None]) -> None:
        seen.append(work)
        await asyncio.to_thread(work.mkdir, parents=True, exist_ok=True)
        (work / "a.py").write_text("a", encoding="utf-8")
        await asyncio.sleep(0.05)
        assert (work / "a.py").exists(), "another install took it away"
        (work / "b.py").write_text("b", encoding="utf-8")

    monkeypatch.setattr(packages, "_install", install)
    return seen


def made(folder: Path) -> LocalFile:
    return asyncio.run(packages_for(PLATFORM, folder, lambda _line: None))


def names(archive: Path) -> list[str]:
    with tarfile.open(archive) as tar:
        return tar.getnames()


def test_two_installs_at_once_make_it_once(works: list[Path], tmp_path: Path) -> None:
    async def both() -> list[LocalFile]:
        return await asyncio.gather(*(packages_for(PLATFORM, tmp_path, lambda _line: None) for _ in range(2)))

    one, other = asyncio.run(both())
    assert one == other
    assert (names(one.path), len(works)) == (["a.py", "b.py"], 1)
    assert list(tmp_path.iterdir()) == [one.path]


@pytest.mark.parametrize(
    "broken", [b"", b"no archive", gzip.compress(b"x" * 4096)[:-9], b"\x1f\x8b\x08\x00" + b"\xff" * 64]
)
def test_a_broken_archive_is_made_again(works: list[Path], tmp_path: Path, broken: bytes) -> None:
    first = made(tmp_path)
    assert made(tmp_path) == first
    assert len(works) == 1
    first.path.write_bytes(broken)
    assert made(tmp_path) == first
    assert len(works) == 2
