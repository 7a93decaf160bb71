"""The error for a file or folder of a model that the system does not let us read."""

from pathlib import Path

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason


def unreadable(path: Path, error: OSError) -> HostError:
    """Return the error that says why a path cannot be read."""
    kind = "folder" if path.is_dir() else "file"
    return HostError(
        Reason.MODEL_FILE_MISSING,
        f"{path} cannot be read: {error.strerror or error}.",
        fix=f"Check the {kind}'s permissions and that its disk is attached.",
        evidence={"path": str(path), "errno": error.errno},
    )
