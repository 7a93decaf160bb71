"""The errors for a file or folder of a model that cannot be read, and for a folder without one."""

import errno
import itertools
import os
import shlex
from pathlib import Path

from engine_host.core.errors import HostError
from engine_host.core.likely_causes import unreadable_file
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

# The system lets us read it, and it is not what it should be.
_ODD = {errno.EINVAL, errno.EFBIG, errno.EISDIR}
# Entries of a folder that are looked at, and models of it that are named.
_LOOKED_AT = 500
_NAMED = 5


def unreadable(path: Path, error: OSError) -> HostError:
    """Return the error that says why a path cannot be read."""
    kind = "folder" if os.path.isdir(path) else "file"
    odd = error.errno in _ODD
    mend = (
        tr("Choose another one.")
        if odd
        else tr("Check the {kind}'s permissions and that its disk is attached.", kind=kind)
    )
    return HostError(
        Reason.MODEL_FILE_MISSING,
        tr("{path} cannot be read: {error}.", path=path, error=error.strerror or error),
        cause=unreadable_file(),
        fix=mend,
        evidence={"path": str(path), "errno": error.errno},
    )


def no_model(folder: Path, config: str) -> HostError:
    """Return the error for a folder with nothing of a model in it, which names what lies below."""
    with os.scandir(folder) as listing:
        below = sorted(
            entry.name for entry in itertools.islice(listing, _LOOKED_AT) if _is_model(entry, config)
        )
    if not below:
        cause = tr("It holds no config.json and no weights.")
        fix = Fix(
            text="Give the path of a GGUF file or of a folder with safetensors, or a name of this list.",
            command="sndr models",
        )
    else:
        cause = tr("Models lie in it: {below}.", below=", ".join(below[:_NAMED]))
        fix = Fix(text="Name one of them.", command=f"sndr run {shlex.quote(str(folder / below[0]))}")
    return HostError(
        Reason.MODEL_FILE_MISSING,
        tr("There is no model in the folder {folder}.", folder=folder),
        cause=cause,
        fix=fix,
        evidence={"path": str(folder), "holds": below[:_NAMED]},
    )


def _is_model(entry: os.DirEntry[str], config: str) -> bool:
    """Return True for a GGUF file and for a folder with a config."""
    return entry.name.lower().endswith(".gguf") or os.path.isfile(os.path.join(entry.path, config))
