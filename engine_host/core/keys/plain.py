"""`api-keys`: the plain file of version 0.1, one key a line, which is read on until it is gone."""

import os
import stat
from pathlib import Path

from engine_host.core.errors import HostError
from engine_host.core.likely_causes import unreadable_file
from engine_host.core.outside import files
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

NAME = "api-keys"
_LARGEST = 1 << 20


def read_api_keys(config: Path) -> tuple[str, ...] | None:
    """Return the lines of `api-keys` in the config folder, each once; None when there is no such file.

    Raises HostError(setting_invalid) when others can read the file.
    """
    path = config / NAME
    try:
        check_private(path)
        lines = files.read_text(path, _LARGEST).splitlines()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else tr("it is not UTF-8 text")
        raise HostError(
            Reason.SETTING_INVALID,
            tr("{path} cannot be read: {why}.", path=path, why=why),
            cause=unreadable_file() if isinstance(error, OSError) else "",
            fix="Make the file readable for you, one key a line.",
            evidence={"file": str(path)},
        ) from error
    found = (line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#"))
    return tuple(dict.fromkeys(found))


def check_private(path: Path) -> None:
    """Refuse a file of keys that others can read. Raises HostError(setting_invalid), OSError."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if os.name == "posix" and mode & 0o077:
        raise HostError(
            Reason.SETTING_INVALID,
            tr(
                "{path} can be read by others (mode {mode:04o}); its keys are not used.", path=path, mode=mode
            ),
            cause="The file was made or copied with the permissions that files have by default.",
            fix=Fix(text="Let nobody else read it.", command=f"chmod 600 {path}"),
            evidence={"file": str(path), "mode": f"{mode:04o}"},
        )
