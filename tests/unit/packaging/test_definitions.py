"""What builds packages on other systems: each path in it is there, and each file can be read."""

import plistlib
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGING = ROOT / "packaging"
# Made by a step before the one that reads them.
MADE = {"packaging/windows/sndr.ico", "packaging/macos/sndr.icns"}
_PATH = re.compile(r"(?<![\w$}/\\])(?:packaging|resources|engine_host|sndr_gui|docs)(?:[/\\][\w.*-]+)+")
DEFINITIONS = sorted(
    path
    for path in PACKAGING.rglob("*")
    if path.suffix in {".sh", ".ps1", ".iss", ".spec"} or path.name in {"AppRun", "freeze.py", "build_deb.py"}
)


def test_the_definitions_of_each_system_are_found() -> None:
    names = {path.relative_to(PACKAGING).as_posix() for path in DEFINITIONS}
    assert names >= {"appimage/build.sh", "macos/build.sh", "windows/build.ps1", "windows/sndr.iss"}


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda path: path.relative_to(PACKAGING).as_posix())
def test_each_path_of_a_definition_is_there(definition: Path) -> None:
    text = definition.read_text(encoding="utf-8")
    named = {found.rstrip(".").replace("\\", "/") for found in _PATH.findall(text)}
    missing = [path for path in named - MADE if not list(ROOT.glob(path))]
    assert missing == []


def test_the_files_of_windows_installer_are_there_or_made() -> None:
    text = (PACKAGING / "windows/sndr.iss").read_text(encoding="utf-8")
    for name, value in re.findall(r"^(LicenseFile|SetupIconFile|OutputDir)=(.+)$", text, re.MULTILINE):
        path = (PACKAGING / "windows" / value.replace("\\", "/")).resolve()
        if name != "OutputDir":
            assert path.is_file() or path.relative_to(ROOT).as_posix() in MADE
        assert path.is_relative_to(ROOT)
    sections = re.findall(r"^\[(\w+)\]$", text, re.MULTILINE)
    assert len(sections) == len(set(sections))
    tasks = set(re.findall(r"^Name: (\w+);", text.split("[Tasks]")[1].split("[")[0], re.MULTILINE))
    assert set(re.findall(r"Tasks: (\w+)", text)) <= tasks
    called = set(re.findall(r"(?:Check: |\{code:)(\w+)", text))
    assert called <= set(re.findall(r"^function (\w+)", text, re.MULTILINE))


def test_each_step_on_windows_ends_the_build_if_it_fails() -> None:
    lines = (PACKAGING / "windows/build.ps1").read_text(encoding="utf-8").splitlines()
    body = lines[lines.index("}") + 1 :]
    steps = [line for line in body if line and not line.startswith("$")]
    assert len(steps) > 5
    assert all(line.startswith("Invoke-Step ") for line in steps)


def test_what_macos_is_to_allow_is_a_property_list() -> None:
    allowed = plistlib.loads((PACKAGING / "macos/entitlements.plist").read_bytes())
    assert allowed
    assert set(allowed.values()) == {True}


def test_what_frozen_leaves_out_is_still_there() -> None:
    spec = (PACKAGING / "frozen/sndr.spec").read_text(encoding="utf-8")
    elsewhere = re.search(r"^ELSEWHERE = \((.+?)\)", spec, re.MULTILINE | re.DOTALL)
    assert elsewhere is not None
    assert all((ROOT / path).is_dir() for path in re.findall(r'"([^"]+)"', elsewhere[1]))


def test_every_desktop_entry_and_picture_is_named_alike() -> None:
    component = ElementTree.parse(PACKAGING / "linux/sndr.metainfo.xml").getroot()
    assert component.findtext("id") == component.findtext("launchable") == "sndr.desktop"
    assert "Icon=sndr\n" in (PACKAGING / "linux/sndr.desktop").read_text(encoding="utf-8")
    assert (ROOT / "resources/icons/sndr.svg").is_file()
