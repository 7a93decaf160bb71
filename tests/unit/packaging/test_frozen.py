"""What is frozen: the environment that it hands on, and how the package describes itself."""

import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from engine_host import __version__

ROOT = Path(__file__).resolve().parents[3]
Script = Callable[[str], ModuleType]


def test_what_it_starts_gets_the_environment_that_the_person_had(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/sndr/_internal:/their/own")
    monkeypatch.setenv("LD_LIBRARY_PATH_ORIG", "/their/own")
    monkeypatch.setenv("_PYI_ARCHIVE_FILE", "/opt/sndr/sndr")
    script("program")._restore_environment()
    assert os.environ["LD_LIBRARY_PATH"] == "/their/own"
    assert not [name for name in os.environ if name.startswith("_PYI_") or name.endswith("_ORIG")]


def test_without_one_of_their_own_there_is_none(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/sndr/_internal")
    script("program")._restore_environment()
    assert "LD_LIBRARY_PATH" not in os.environ


def test_the_description_for_software_centres_is_whole(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    deb = script("build_deb")
    monkeypatch.setattr(deb, "source_date", lambda: 86400)
    component = ElementTree.fromstring(deb.metainfo())
    release = component.find("releases/release")
    assert release is not None
    assert release.attrib == {"version": deb.debian_version(__version__), "date": "1970-01-02"}
    entry = (ROOT / "packaging/linux/sndr.desktop").read_text(encoding="utf-8")
    assert component.findtext("launchable") == "sndr.desktop"
    assert f"Name={component.findtext('name')}\n" in entry
    assert {one.text for one in component.iter("binary")} == set(deb.PROGRAMS)


def test_what_comes_before_a_release_is_older_for_dpkg_too(script: Script) -> None:
    # `dpkg --compare-versions A lt B` of each and its next; 0.3.0.dev0 would be newer than 0.3.0.
    versions = ("0.2.0", "0.3.0.dev0", "0.3.0b2.dev3", "0.3.0b2", "0.3.0rc1", "0.3.0", "0.3.0.post1")
    assert [script("build_deb").debian_version(version) for version in versions] == [
        *("0.2.0", "0.3.0~~dev0", "0.3.0~b2~~dev3", "0.3.0~b2", "0.3.0~rc1", "0.3.0", "0.3.0.post1")
    ]


def test_every_word_of_the_package_is_filled_in(
    script: Script, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    deb = script("build_deb")
    monkeypatch.setattr(deb, "depends", lambda: ["libc6 (>= 2.36)", "libgl1"])
    monkeypatch.setattr(deb, "_said", lambda *_: "amd64\n")
    (tmp_path / "usr").mkdir()
    (tmp_path / "usr/file").write_bytes(b"x" * 5000)
    text = deb.control(tmp_path, "1.2.3")
    assert "@" not in text.replace("maintainers@", "")
    assert "Depends: libc6 (>= 2.36), libgl1\n" in text
    assert "Installed-Size: 4\n" in text
    assert text.endswith("\n")
