"""The project's own files agree with each other."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("run.lock", "test.lock", "bootstrap.lock")


def locked(name: str) -> dict[str, list[tuple[str, str]]]:
    """The packages of a lock file: versions and markers by name."""
    text = (ROOT / "packaging/locks" / name).read_text(encoding="utf-8").replace("\\\n", " ")
    found: dict[str, list[tuple[str, str]]] = {}
    for line in filter(str.strip, text.splitlines()):
        pinned = re.match(r"([a-z0-9.-]+)==([^ ;]+)(?: *; *(.+?))?(?= +--hash)", line)
        assert pinned, line
        package, version, marker = pinned.groups()
        found.setdefault(canonicalize_name(package), []).append((version, marker or ""))
    return found


def wanted(*extras: str) -> list[Requirement]:
    """Return the requirements in pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lines = list(project["project"]["dependencies"])
    for extra in extras:
        lines += project["project"]["optional-dependencies"][extra]
    return [Requirement(line) for line in lines]


@pytest.mark.parametrize(
    ("lock", "extras"), [("run.lock", ("engines",)), ("test.lock", ("engines", "test"))], ids=["run", "test"]
)
def test_lock_holds_what_pyproject_asks_for(lock: str, extras: tuple[str, ...]) -> None:
    packages = locked(lock)
    for requirement in wanted(*extras):
        versions = packages.get(canonicalize_name(requirement.name))
        assert versions, f"{requirement.name} is not in {lock}: run `make lock`"
        for version, _ in versions:
            assert requirement.specifier.contains(version), f"{requirement} but {version} in {lock}"


def test_both_locks_have_the_same_versions() -> None:
    run, test = locked("run.lock"), locked("test.lock")
    assert {name: test.get(name) for name in run} == run


@pytest.mark.parametrize("name", LOCKS)
def test_lock_has_hashes_and_no_address(name: str) -> None:
    text = (ROOT / "packaging/locks" / name).read_text(encoding="utf-8")
    assert "://" not in text
    entries = re.findall(r"^[a-z0-9][^\n]*==", text, re.MULTILINE)
    assert entries
    for block in re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]:
        assert "--hash=sha256:" in block, block.splitlines()[0]


def test_system_packages_have_a_group_and_a_reason() -> None:
    group = None
    for line in (ROOT / "packaging" / "system-packages.txt").read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        entry = re.fullmatch(r"(base|window|test): [a-z0-9.+-]+( \| [a-z0-9.+-]+)*( +# .+)?", line)
        assert entry, line
        # A reason stands at the first of a run of packages that share it.
        assert entry.group(3) or group == entry.group(1), line
        group = entry.group(1)


def test_links_of_the_documents_lead_somewhere() -> None:
    pictures = any((ROOT / "docs" / "images").glob("*.png"))
    for document in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("packaging/*.md")):
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text(encoding="utf-8")):
            made_later = target.startswith("docs/images/") and not pictures
            if "://" not in target and not made_later:
                assert (document.parent / target).exists(), f"{document.name} links to {target}"
