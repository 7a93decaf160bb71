"""The folder that was frozen as a package of Debian and Ubuntu: `build_deb.py FOLDER`, after freeze.py.

What it depends on is read from the libraries themselves: the packages that hold what they need and do not
bring. The same folder gives the same bytes.
"""

import argparse
import gzip
import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "frozen"))
import shell_files  # It finds the tree of the program.
from freeze import FOLDER, NAME, ROOT, WORK, elf_files, run, source_date

from engine_host import __version__

LINUX = ROOT / "packaging/linux"
HOME = f"usr/lib/{NAME}"
PROGRAMS = ("sndr", "sndr-gui")
# Qt leaves a plugin out that needs what a machine lacks; these libraries belong to plugins.
OPTIONAL = re.compile(r"/plugins/|/libQt6W(ayland|lShell)")
_NEEDED = re.compile(r"^\s+NEEDED\s+(\S+)", re.MULTILINE)
_PLACE = re.compile(r"^\s+(\S+) \(libc6,(?:x86-64|AArch64)[^)]*\) => (\S+)", re.MULTILINE)
_BEFORE = re.compile(r"\.(?=dev\d)|(?=(?:a|b|rc)\d)")
_GLIBC = re.compile(r"GLIBC_(\d+)\.(\d+)")


def tree() -> Path:
    """Lay out the files as they are once installed; return their root."""
    root = WORK / "deb"
    shutil.rmtree(root, ignore_errors=True)
    (root / "usr/lib").mkdir(parents=True)
    shutil.copytree(FOLDER, root / HOME, symlinks=True)
    (root / "usr/bin").mkdir()
    for name in PROGRAMS:
        (root / "usr/bin" / name).symlink_to(f"../lib/{NAME}/{name}")
    share = root / "usr/share"
    entry = (LINUX / "sndr.desktop").read_text(encoding="utf-8").replace("@PROGRAM@", "sndr-gui")
    _write(share / "applications/sndr.desktop", entry)
    _write(share / "metainfo/sndr.metainfo.xml", metainfo())
    _write(share / f"doc/{NAME}/copyright", (LINUX / "copyright").read_text(encoding="utf-8"))
    shell_files.write(share, source_date())
    manual = share / shell_files.MANUAL
    manual.with_name(f"{manual.name}.gz").write_bytes(gzip.compress(manual.read_bytes(), 9, mtime=0))
    manual.unlink()
    changes = share / f"doc/{NAME}/changelog.gz"
    changes.write_bytes(gzip.compress((ROOT / "CHANGELOG.md").read_bytes(), 9, mtime=0))
    icons = [sys.executable, str(ROOT / "packaging/frozen/icons.py"), str(share / "icons/hicolor")]
    run(icons, QT_QPA_PLATFORM="offscreen")
    return root


def metainfo() -> str:
    """Return the description for software centres, with the version and the date of what is packed."""
    text = (LINUX / "sndr.metainfo.xml").read_text(encoding="utf-8")
    day = datetime.fromtimestamp(source_date(), UTC).date().isoformat()
    return text.replace("@VERSION@", debian_version(__version__)).replace("@DATE@", day)


def debian_version(version: str) -> str:
    """Return a version of PEP 440 as one of Debian: what comes before a release has a `~`."""
    return _BEFORE.sub(lambda found: "~~" if found[0] else "~", version)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def depends() -> list[str]:
    """Return the packages that hold what the folder needs of a system. Raises SystemExit for one without."""
    files = elf_files()
    brought = {path.name for path in files}
    needed: dict[str, Path] = {}
    glibc = (2, 0)
    for path in files:
        said = _said("objdump", "-p", str(path))
        for name in _NEEDED.findall(said):
            if name not in brought and (name not in needed or OPTIONAL.search(str(needed[name]))):
                needed[name] = path
        glibc = max([glibc, *((int(major), int(minor)) for major, minor in _GLIBC.findall(said))])
    places = dict(_PLACE.findall(_said("ldconfig", "-p")))
    packages = set()
    for name, path in sorted(needed.items()):
        owner = _owner(places.get(name))
        if owner is not None:
            packages.add(owner)
        elif not OPTIONAL.search(str(path)) and not name.startswith("ld-linux"):
            raise SystemExit(f"{path} needs {name}, which no package of this system has.")
    packages.discard("libc6")
    return [f"libc6 (>= {glibc[0]}.{glibc[1]})", *sorted(packages)]


def _owner(path: str | None) -> str | None:
    """Return the package that a library belongs to, by each name that it has had since Debian 12."""
    if path is None:
        return None
    # dpkg knows a file by the folder that its package names, which may be a link to another one now.
    names = {path, os.path.realpath(path)}
    names |= {name.removeprefix("/usr") for name in names} | {f"/usr{name}" for name in names}
    for one in sorted(names):
        done = subprocess.run(["dpkg-query", "-S", one], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            name = done.stdout.splitlines()[0].split(":")[0]
            # Renamed for 64-bit times in Debian 13 and Ubuntu 24.04.
            return f"{name}t64 | {name}" if name.startswith(("libglib2.0-", "libssl3")) else name
    return None


def _said(*command: str) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}, check=True
    )
    return done.stdout


def control(root: Path, version: str) -> str:
    """Return the package's own description."""
    size = sum(path.lstat().st_size for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    text = (LINUX / "control").read_text(encoding="utf-8")
    values = {
        "VERSION": version,
        "ARCHITECTURE": _said("dpkg", "--print-architecture").strip(),
        "SIZE": str(size // 1024),
        "DEPENDS": ", ".join(depends()),
    }
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


def main() -> int:
    """Build the package, and say what came out; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the package goes")
    asked = parser.parse_args()
    root = tree()
    _write(root / "DEBIAN/control", control(root, debian_version(__version__)))
    shutil.copyfile(LINUX / "postinst", root / "DEBIAN/postinst")
    for path in [root, *root.rglob("*")]:
        if not path.is_symlink() and HOME not in str(path):
            path.chmod(0o755 if path.is_dir() or path.name == "postinst" else 0o644)
    architecture = _said("dpkg", "--print-architecture").strip()
    path = asked.folder / f"{NAME}_{debian_version(__version__)}_{architecture}.deb"
    run(
        ["dpkg-deb", "--root-owner-group", "-Zxz", "-z9", "--build", str(root), str(path)],
        SOURCE_DATE_EPOCH=str(source_date()),
    )
    print(f"{path}: {path.stat().st_size / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
