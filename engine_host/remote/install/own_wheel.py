"""The wheel of this very program: built from its sources, or put together again where it is installed."""

import asyncio
import base64
import csv
import hashlib
import io
import os
import shutil
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from engine_host import __version__
from engine_host.core import atomic_file
from engine_host.core.errors import HostError
from engine_host.engines.process.tool import ToolError, run_tool
from engine_host.protocol.errors import Fix, Reason

PROJECT = "sndr-control-center"
LOCK = Path(__file__).parent / "locks" / "host.lock"
_ROOT = Path(__file__).resolve().parents[3]
_DAY = 86400.0
IS_CLONE = (_ROOT / "pyproject.toml").is_file()
# The earliest time that a zip can hold, so that the same files give the same bytes.
_TIME = (1980, 1, 1, 0, 0, 0)
_NOT_OF_THE_WHEEL = {"INSTALLER", "REQUESTED", "direct_url.json", "RECORD", "uv_cache.json"}


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file that is to be uploaded, by its SHA-256."""

    path: Path
    size: int
    sha256: str

    @property
    def release(self) -> str:
        """The name of the release that this wheel is: two builds of one version differ in it."""
        return f"{__version__}-{self.sha256[:12]}"


async def own_wheel(folder: Path) -> LocalFile:
    """Return the wheel of this program, made in `folder`.

    Raises HostError(install_failed), HostError(disk_full), HostError(not_writable).
    """
    try:
        part = await asyncio.to_thread(_new_folder, folder)
    except OSError as error:
        raise atomic_file.saving_failed(folder, error) from error
    try:
        if IS_CLONE:
            await _build(part)
        return await asyncio.to_thread(_made, part, folder)
    except (PackageNotFoundError, FileNotFoundError) as error:
        raise HostError(
            Reason.INSTALL_FAILED,
            "This program cannot be installed elsewhere from here.",
            cause="It is neither its source tree nor an installed wheel that has all of its files.",
            fix=Fix(text="Install it from a wheel, made in its source tree.", command="make package"),
            evidence={"missing": str(error)},
        ) from error
    finally:
        await asyncio.to_thread(shutil.rmtree, part, ignore_errors=True)


def _new_folder(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for old in folder.iterdir():
        # Another install may be sending one, or making it.
        if time.time() - old.stat().st_mtime > _DAY:
            shutil.rmtree(old, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix="part-", dir=folder))


def _made(part: Path, folder: Path) -> LocalFile:
    """Put the wheel where its content belongs: whoever makes the same one finds the same file."""
    made = file_of(next(part.glob("*.whl")) if IS_CLONE else packed(distribution(PROJECT), part))
    target = folder / made.release / made.path.name
    target.parent.mkdir(mode=0o700, exist_ok=True)
    os.replace(made.path, target)
    os.utime(target.parent)
    return LocalFile(target, made.size, made.sha256)


def file_of(path: Path) -> LocalFile:
    """Return a file with its size and SHA-256."""
    with path.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return LocalFile(path, path.stat().st_size, digest)


def packed(installed: Distribution, folder: Path) -> Path:
    """Put an installed distribution together again as the wheel that it was. Raises FileNotFoundError."""
    metadata = next(one for one in installed.files or () if one.name == "RECORD").parent.name
    rows: list[tuple[str, str, str]] = []
    path = folder / f"{PROJECT.replace('-', '_')}-{installed.version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:

        def add(name: str, content: bytes) -> None:
            info = zipfile.ZipInfo(name, _TIME)
            info.external_attr, info.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
            archive.writestr(info, content)

        for one in sorted(installed.files or (), key=str):
            name = one.as_posix()
            ours = name.startswith(("engine_host/", "sndr_gui/", f"{metadata}/"))
            of_the_installer = one.parent.name == metadata and one.name in _NOT_OF_THE_WHEEL
            if not ours or of_the_installer or name.endswith(".pyc"):
                continue
            content = Path(str(installed.locate_file(one))).read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            rows.append((name, f"sha256={digest}", str(len(content))))
            add(name, content)
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([*rows, (f"{metadata}/RECORD", "", "")])
        add(f"{metadata}/RECORD", text.getvalue().encode())
    return path


def small_package() -> str:
    """Return one small package of the lock with its hashes: what shows whether a package index answers."""
    blocks = LOCK.read_text(encoding="utf-8").split("\n")
    start = next(number for number, line in enumerate(blocks) if line.startswith("h11=="))
    end = next(number for number in range(start + 1, len(blocks)) if not blocks[number].startswith(" "))
    return "\n".join(blocks[start:end]) + "\n"


def pythons() -> tuple[tuple[int, int], ...]:
    """Return the versions of Python that the lock is good for, the preferred one first."""
    return ((3, 12), (3, 13), (3, 11))


async def _build(folder: Path) -> None:
    log = folder / "build.log"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    argv = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    try:
        with log.open("w", encoding="utf-8") as file:
            await run_tool(argv, cwd=_ROOT, environment=environment, log=file)
    except ToolError as error:
        raise HostError(
            Reason.DISK_FULL if error.disk_full else Reason.INSTALL_FAILED,
            "The wheel of this program could not be built.",
            cause=error.tail[-1] if error.tail else "",
            fix=Fix(text="Set the clone up again; it installs what builds the wheel.", command="make setup"),
            evidence={"output": list(error.tail[-30:]), "log": str(log)},
        ) from error
