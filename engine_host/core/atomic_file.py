"""Files that are either as they were or as they should be: written beside, flushed, renamed."""

import contextlib
import errno
import glob
import os
import tempfile
import time
from pathlib import Path

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr

_YOUNG = 60.0


def write(path: Path, data: bytes | str, mode: int = 0o600, *, follow: bool = False) -> None:
    """Replace the file at `path`; on failure the old one stays and nothing is left beside it.

    `follow`: where `path` is a link, its target is replaced and the link stays. For files of a person's own
    folders, who may keep them elsewhere; never in a folder where others may make links.
    Raises HostError(disk_full) and HostError(not_writable).
    """
    content = data.encode() if isinstance(data, str) else data
    name = ""
    if follow:
        path = Path(os.path.realpath(path))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
        _remove_left_behind(path)
    except OSError as error:
        if name and os.path.exists(name):
            os.unlink(name)
        raise saving_failed(path, error) from error


def _remove_left_behind(path: Path) -> None:
    """Remove what writers of this file left beside it when they were killed; young ones may be at work."""
    before = time.time() - _YOUNG
    for other in path.parent.glob(f".{glob.escape(path.name)}.????????"):
        with contextlib.suppress(OSError):
            if other.stat().st_mtime < before:
                other.unlink()


def saving_failed(path: Path, error: OSError) -> HostError:
    """The clear error for an OSError met while saving `path`."""
    evidence = {"path": str(path), "errno": error.errno}
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        return HostError(
            Reason.DISK_FULL,
            tr("The disk is full: {path} could not be saved. What was there is unchanged.", path=path),
            cause="No space is left for this user on that disk.",
            fix="Free some space and try again.",
            evidence=evidence,
        )
    return HostError(
        Reason.NOT_WRITABLE,
        tr(
            "{path} could not be saved: {error}. What was there is unchanged.",
            path=path,
            error=error.strerror,
        ),
        cause="The folder or the file is not writable for you.",
        fix="Make it writable, or set SNDR_HOME to a folder of yours.",
        evidence=evidence,
    )
