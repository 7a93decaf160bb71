"""The project's own files agree with each other."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from engine_host import __version__

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "packaging/locks"
HOST = ROOT / "engine_host/remote/install/locks/host.lock"
RUN, TEST, BOOTSTRAP = (FOLDER / f"{name}.lock" for name in ("run", "test", "bootstrap"))
PROGRAM = ("engines", "window", "package")


def locked(path: Path) -> dict[str, list[tuple[str, str]]]:
    """The packages of a lock file: versions and markers by name."""
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
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


def test_the_version_stands_in_one_place_and_is_said_by_the_changelog() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["path"] == "engine_host/__init__.py"
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    version, newest = Version(__version__), next(one for one in headings if one != "Unreleased")
    if headings[0] == "Unreleased":
        assert version.is_devrelease
        assert version > Version(newest)
    else:
        assert version == Version(newest)


@pytest.mark.parametrize(
    ("lock", "extras"),
    [(RUN, PROGRAM), (TEST, (*PROGRAM, "test")), (HOST, ("engines",))],
    ids=["run", "test", "host"],
)
def test_lock_holds_what_pyproject_asks_for(lock: Path, extras: tuple[str, ...]) -> None:
    packages = locked(lock)
    for requirement in wanted(*extras):
        versions = packages.get(canonicalize_name(requirement.name))
        assert versions, f"{requirement.name} is not in {lock.name}: run `make lock`"
        for version, _ in versions:
            assert requirement.specifier.contains(version), f"{requirement} but {version} in {lock.name}"


@pytest.mark.parametrize("lock", [RUN, HOST], ids=["run", "host"])
def test_all_locks_have_the_same_versions(lock: Path) -> None:
    # Only versions: which system a package is for follows from who else asks for it.
    own, test = (
        {name: {version for version, _ in several} for name, several in locked(one).items()}
        for one in (lock, TEST)
    )
    assert {name: test.get(name) for name in own} == own


def test_a_host_on_another_machine_gets_no_window() -> None:
    window = {canonicalize_name(one.name) for one in wanted("window")} - {
        canonicalize_name(one.name) for one in wanted()
    }
    assert window
    assert not window & set(locked(HOST))


@pytest.mark.parametrize("lock", [RUN, TEST, BOOTSTRAP, HOST], ids=lambda lock: lock.stem)
def test_lock_has_hashes_and_no_address(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8")
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
