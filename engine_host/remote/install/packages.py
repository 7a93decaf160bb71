"""The packages of a host for another machine's Python and platform, as one archive."""

import asyncio
import gzip
import hashlib
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import uv

from engine_host.core import atomic_file
from engine_host.core.errors import HostError
from engine_host.engines.process.tool import ToolError, run_tool
from engine_host.engines.vllm.package_sources import package_sources
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr
from engine_host.remote.install.own_wheel import LOCK, LocalFile, file_of

# The oldest systems that uv knows by name and wheels are made for; glibc 2.28 is of 2018.
_GLIBC = (40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 28, 17)
_MACHINES = {"x86_64": "x86_64", "aarch64": "aarch64"}


@dataclass(frozen=True, slots=True)
class Platform:
    """The Python and the system that packages have to fit, the latter as wheels name it."""

    python: tuple[int, int]
    tag: str

    @property
    def version(self) -> str:
        """The Python as people write it."""
        return ".".join(map(str, self.python))


def platform_of(python: tuple[int, int], machine: str, libc: tuple[str, str]) -> Platform | None:
    """Return the platform of a machine, by processor and C library; None where no wheels are made for it."""
    name, version = libc
    parts = version.split(".")
    if machine not in _MACHINES or name != "glibc" or len(parts) < 2 or not all(map(str.isdigit, parts[:2])):
        return None
    minor = next((one for one in _GLIBC if (2, one) <= (int(parts[0]), int(parts[1]))), None)
    return Platform(python, f"{_MACHINES[machine]}-manylinux_2_{minor}") if minor is not None else None


async def packages_for(platform: Platform, folder: Path, tell: Callable[[str], None]) -> LocalFile:
    """Return the archive for a platform, made once for each lock.

    Raises HostError(download_failed), HostError(disk_full), HostError(not_writable).
    """
    lock = hashlib.sha256(LOCK.read_bytes()).hexdigest()[:12]
    archive = folder / f"packages-{lock}-{platform.version}-{platform.tag}.tar.gz"
    async with _one_at_a_time:
        if (ready := await asyncio.to_thread(_ready, archive)) is not None:
            return ready
        try:
            work = await asyncio.to_thread(_new_folder, folder)
        except OSError as error:
            raise atomic_file.saving_failed(folder, error) from error
        try:
            await _install(platform, work / "all", folder / "packages.log", tell)
            return await asyncio.to_thread(_packed, work / "all", archive)
        except OSError as error:
            raise atomic_file.saving_failed(folder, error) from error
        finally:
            await asyncio.to_thread(shutil.rmtree, work, ignore_errors=True)


# For two machines of one kind the second install finds what the first one made.
_one_at_a_time = asyncio.Lock()


def _ready(archive: Path) -> LocalFile | None:
    """Return an archive that was made before; one that cannot be read to its end is made again."""
    try:
        size = 0
        with gzip.open(archive) as packed:
            while piece := packed.read(1 << 20):
                size += len(piece)
        return file_of(archive) if size else None
    except (OSError, EOFError, zlib.error):
        return None


def _new_folder(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix="packages.part.", dir=folder))


def _packed(work: Path, archive: Path) -> LocalFile:
    """Pack what was installed; archives of other locks are of no use any more."""
    of_this_lock = archive.name.split("-")[1]
    for old in archive.parent.glob("packages-*.tar.gz"):
        if old.name.split("-")[1] != of_this_lock:
            old.unlink()
    _pack(work, archive)
    return file_of(archive)


async def _install(platform: Platform, work: Path, log: Path, tell: Callable[[str], None]) -> None:
    argv = [uv.find_uv_bin(), "pip", "install", "--target", str(work), "--no-deps", "--require-hashes"]
    argv += [
        "--only-binary",
        ":all:",
        "--python-version",
        platform.version,
        "--python-platform",
        platform.tag,
    ]
    argv += ["--link-mode", "copy", *package_sources().arguments, "-r", str(LOCK)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"UV_PYTHON_DOWNLOADS": "never", "UV_HTTP_TIMEOUT": "120", "NO_COLOR": "1"}
    try:
        with log.open("w", encoding="utf-8") as file:
            await run_tool(argv, cwd=work.parent, environment=environment, log=file, on_line=tell)
    except ToolError as error:
        raise HostError(
            Reason.DISK_FULL if error.disk_full else Reason.DOWNLOAD_FAILED,
            tr(
                "The packages for Python {version} on {tag} could not be downloaded here.",
                version=platform.version,
                tag=platform.tag,
            ),
            cause=error.tail[-1] if error.tail else "",
            fix="Check the network of this machine, or the mirror in pip's settings; then try again.",
            evidence={"output": list(error.tail[-30:]), "log": str(log)},
        ) from error


def _pack(folder: Path, archive: Path) -> None:
    """Write the archive; the same packages give the same bytes, so an upload that broke off can go on."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if not (member.isreg() or member.isdir()) or "__pycache__" in member.name or member.name == "./.lock":
            return None
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mtime = 0
        member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        return member

    # Beside what is packed: another process may make the same archive.
    part = folder.parent / "packages.part"
    with (
        part.open("wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for path in sorted(folder.rglob("*")):
            tar.add(path, path.relative_to(folder).as_posix(), recursive=False, filter=plain)
    part.replace(archive)
