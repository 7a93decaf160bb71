"""A file of a person's settings, opened only where it is plainly theirs and plainly a file."""

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from engine_host.core.errors import HostError
from engine_host.core.outside import files
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

MOST = 4 << 20
"""Bytes that a file of settings may have; the largest that people have are some 100 KB."""


@dataclass(frozen=True)
class OwnFile:
    """The bytes of a file and its permissions; `content` is None where there is none."""

    path: Path
    content: bytes | None
    mode: int = 0o600


def read(path: Path) -> OwnFile:
    """Return the bytes of a file of the person's own.

    Raises HostError(not_writable) for a link, for what is no file, and for one that is not theirs to change;
    HostError(setting_invalid) for one that is too large.
    """
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        _check_folder(path)
        return OwnFile(path, None)
    except OSError as error:
        raise left_alone(path, tr("it cannot be looked at ({strerror})", strerror=error.strerror)) from error
    if stat.S_ISLNK(info.st_mode):
        raise left_alone(path, tr("it is a link to another file, perhaps one that something else keeps up"))
    if not stat.S_ISREG(info.st_mode):
        raise left_alone(path, tr("it is no regular file"))
    if hasattr(os, "getuid") and info.st_uid != os.getuid():
        raise left_alone(path, tr("it belongs to another user ({st_uid})", st_uid=info.st_uid))
    if not info.st_mode & stat.S_IWUSR:
        raise left_alone(path, tr("it is read-only"))
    _check_folder(path)
    try:
        with files.open_regular(path, follow=False) as file:
            content = file.read(MOST + 1)
    except OSError as error:
        what = (
            tr("it is a link")
            if error.errno == errno.ELOOP
            else tr("it cannot be read ({strerror})", strerror=error.strerror)
        )
        raise left_alone(path, what) from error
    if len(content) > MOST:
        raise left_alone(path, tr("it has more than {most} MiB, which no such file has", most=MOST >> 20))
    return OwnFile(path, content, stat.S_IMODE(info.st_mode))


def left_alone(path: Path, why: str) -> HostError:
    """Return the refusal to touch a file."""
    return HostError(
        Reason.NOT_WRITABLE,
        tr("{path} is left alone: {why}.", path=path, why=why),
        fix=Fix(
            text=tr("Put the settings in by hand, or mend the file and try again."), command="sndr connect"
        ),
        evidence={"path": str(path)},
    )


def _check_folder(path: Path) -> None:
    """Raise HostError(not_writable) where nothing could be put beside a file."""
    folder = path.parent
    while not os.path.lexists(folder) and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        raise left_alone(path, tr("{folder} is no folder", folder=folder))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise left_alone(path, tr("you may not write into {folder}", folder=folder))
