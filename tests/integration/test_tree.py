"""The files of the project as git and bash see them."""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import LONGEST
from tests.unit.test_layers import LARGE_FOLDERS, LONGEST_FILE, MOST_FILES

ROOT = Path(__file__).resolve().parents[2]
# The largest tree that people should have to clone.
TREE_LIMIT = 50_000_000


@pytest.fixture(scope="module")
def tracked() -> list[str]:
    """The files that git knows of; skips the test outside of a work tree."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False, timeout=30)
    if listed.returncode != 0:
        pytest.skip("not a git work tree")
    return [name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


def test_tree_is_small_enough_to_clone(tracked: list[str]) -> None:
    assert sum((ROOT / name).stat().st_size for name in tracked) < TREE_LIMIT


def test_files_that_run_first_are_there(tracked: list[str]) -> None:
    assert [name for name in LONGEST if name not in tracked] == []
    assert len(set(LONGEST)) == len(LONGEST)


def test_the_top_level_holds_what_was_agreed(tracked: list[str]) -> None:
    folders = {name.split("/")[0] for name in tracked if "/" in name and not name.startswith(".")}
    assert folders == {
        *("sndr_gui", "engine_host", "presets", "resources", "tests", "packaging", "docs"),
    }
    assert {name for name in tracked if name.endswith(".toml") and "/" not in name} == {"pyproject.toml"}
    assert not [name for name in tracked if re.fullmatch(r"[^/]+\.(py|sh)", name)], "loose at the top"


@pytest.mark.parametrize("package", ["engine_host", "sndr_gui"])
def test_code_is_in_folders_that_one_can_overlook(tracked: list[str], package: str) -> None:
    sources = [Path(name) for name in tracked if name.startswith(f"{package}/") and name.endswith(".py")]
    loose = {path.stem for path in sources if path.parent == Path(package)}
    assert loose <= {"__init__", "__main__", "app"}
    files = Counter(path.parent.as_posix() for path in sources if path.stem != "__init__")
    assert {folder for folder, count in files.items() if count > MOST_FILES} <= LARGE_FOLDERS


def test_tests_are_in_folders_and_files_that_one_can_overlook(tracked: list[str]) -> None:
    sources = [Path(name) for name in tracked if name.startswith("tests/") and name.endswith(".py")]
    files = Counter(path.parent.as_posix() for path in sources if path.stem != "__init__")
    assert {folder: count for folder, count in files.items() if count > MOST_FILES} == {}
    lines = {path.as_posix(): (ROOT / path).read_bytes().count(b"\n") for path in sources}
    assert {name: count for name, count in lines.items() if count > LONGEST_FILE} == {}


def test_every_shell_script_parses() -> None:
    scripts = [*ROOT.glob("packaging/**/*.sh"), ROOT / ".ci" / "run"]
    assert len(scripts) > 3
    for script in scripts:
        checked = subprocess.run(["bash", "-n", str(script)], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stderr


def test_nothing_names_a_machine_or_an_index_of_packages(tracked: list[str]) -> None:
    # An address of a package index in the tree would overrule the one that a person has set.
    pattern = re.compile(rb"/home/[a-z]+/|--(extra-)?index-url|files\.pythonhosted")
    for name in tracked:
        path = ROOT / name
        if path != Path(__file__) and path.suffix not in {".png", ".gguf", ".ttf", ".otf"}:
            found = pattern.search(path.read_bytes())
            assert found is None, f"{name}: {found and found.group()!r}"
