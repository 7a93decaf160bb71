"""The error for a file or folder of a model that cannot be read."""

import errno
import os
from pathlib import Path

from engine_host.core.errors import HostError
from engine_host.core.likely_causes import unreadable_file
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr

# The system lets us read it, and it is not what it should be.
_ODD = {errno.EINVAL, errno.EFBIG, errno.EISDIR}


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
