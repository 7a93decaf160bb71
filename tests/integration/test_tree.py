"""The files of the project as git and bash see them."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The largest tree that people should have to clone.
TREE_LIMIT = 50_000_000


def test_tree_is_small_enough_to_clone() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=30
    )
    if listed.returncode != 0:
        pytest.skip("not a git work tree")
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    assert sum(path.stat().st_size for path in paths if path.is_file()) < TREE_LIMIT


def test_every_shell_script_parses() -> None:
    scripts = [*ROOT.glob("packaging/**/*.sh"), ROOT / ".ci" / "run"]
    assert len(scripts) > 3
    for script in scripts:
        checked = subprocess.run(["bash", "-n", str(script)], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stderr


def test_nothing_names_a_machine_or_an_index_of_packages() -> None:
    # An address of a package index in the tree would overrule the one that a person has set.
    pattern = re.compile(rb"/home/[a-z]+/|--(extra-)?index-url|files\.pythonhosted")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False, timeout=30)
    if listed.returncode != 0:
        pytest.skip("not a git work tree")
    for name in filter(None, listed.stdout.decode().split("\0")):
        path = ROOT / name
        if path.is_file() and path != Path(__file__) and path.suffix not in {".png", ".gguf", ".ttf", ".otf"}:
            found = pattern.search(path.read_bytes())
            assert found is None, f"{name}: {found and found.group()!r}"
