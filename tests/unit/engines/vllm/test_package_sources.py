"""The package indexes of this machine, as variables and files of anybody's name them."""

import os
from pathlib import Path

import pytest

from engine_host.engines.vllm.package_sources import package_sources


@pytest.mark.parametrize("link", ["http://[", "~nobody-of-this-name/wheels", "a", "https://example.org/x"])
def test_any_link_may_be_named(tmp_path: Path, link: str) -> None:
    found = package_sources({"PIP_FIND_LINKS": link}, tmp_path)
    assert len(found.links) == 1
    assert found.arguments == ["--find-links", found.links[0]]


def test_files_of_nonsense_are_passed_over(tmp_path: Path) -> None:
    named = tmp_path / "pip.conf"
    for content in (b"\xff", b"[global]\nindex-url", b"[global\n", b"x" * 5000, b"[global]\n[global]\n"):
        named.write_bytes(content)
        assert package_sources({"PIP_CONFIG_FILE": str(named)}, tmp_path).index is None
    named.unlink()
    os.mkfifo(named)
    assert package_sources({"PIP_CONFIG_FILE": str(named)}, tmp_path).index is None
